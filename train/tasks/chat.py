"""Small talk, questions about the world, and very short stories, one to three turns."""
from tasks import Item, assistant, choice, user
from world import CREATURE, PEOPLE, TOWN

# animal: its name and where it lives
ANIMALS = {"fox": ("Rufus", "forest"), "cat": ("Minka", "garden"), "dog": ("Bruno", "village"),
           "bear": ("Ursa", "forest"), "mouse": ("Pip", "barn"), "owl": ("Hilda", "tower"),
           "frog": ("Quax", "lake"), "hen": ("Berta", "barn"), "goat": ("Zita", "hill"),
           "duck": ("Dora", "lake"), "horse": ("Silver", "hill"), "rabbit": ("Hops", "garden")}
# treasure: who lost it
TREASURES = {"key": "bird", "bell": "child", "lamp": "turtle", "map": "squirrel", "coin": "snail",
             "shell": "child", "book": "bird", "feather": "bee"}
FEELINGS = {"sad": "I am sorry to hear that. Do you want to talk about it?",
            "happy": "That is good to hear. What made you happy?",
            "tired": "Then rest a little. A cup of tea may help.",
            "bored": "Shall I tell you a story?",
            "hungry": "Then it is time to eat something warm.",
            "cold": "Put on a coat and drink some tea."}

# (what the user may say, the reply)
TALK = [
    (["Hello!", "Hi!", "Hi there.", "Good day.", "Hello, Ingot."],
     "Hello! How can I help you today?"),
    (["Good morning!", "Good morning to you."], "Good morning! I hope you slept well."),
    (["Good night.", "Good night, Ingot."], "Good night! Sleep well."),
    (["How are you?", "How are you today?", "How do you do?"], "I am well, thank you. And you?"),
    (["Who are you?", "What is your name?", "What are you called?"],
     "My name is Ingot. I am a very small language model."),
    (["What can you do?", "Can you help me?", "What are you good at?"],
     "I can solve small word problems, answer questions about my world, call tools and tell "
     "stories."),
    (["How big are you?", "Are you a large model?"],
     "I am tiny. All of me fits into eight megabytes."),
    (["Thank you!", "Thanks a lot.", "Thank you, that helps."], "You are welcome."),
    (["Goodbye.", "Bye!", "See you soon."], "Goodbye! Come back soon."),
    (["Do you like tea?", "Tea or milk?"], "I like the sound of tea, but I cannot drink."),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh."],
     "Why did the book go to school? It wanted to be read."),
    (["Are you a human?", "Are you alive?"], "No, I am a program. But I enjoy our talk."),
    (["What is the meaning of life?", "Why are we here?"],
     "I am too small to know. Being kind is a good start."),
    (["Where do you live?", "Where are you?"], "I live in a small file on your computer."),
    (["What do you think of rain?", "Do you like rain?"], "Rain is good for the garden."),
    (["I am well.", "I am fine, thank you."], "I am glad to hear that."),
    (["Can you sing?", "Sing a song."], "La la la! I am better at stories."),
    (["Is it late?", "What time is it?"], "I have no clock, so I cannot tell."),
]


def talk(draw):
    asked, reply = draw.choice(TALK)
    return draw.choice(asked), reply


def feeling(draw):
    word = draw.choice(list(FEELINGS))
    said = draw.choice([f"I am {word}.", f"I feel {word} today.", f"I am so {word}."])
    return said, FEELINGS[word]


def introduction(draw):
    name = draw.choice(PEOPLE)
    return (draw.choice([f"My name is {name}.", f"I am {name}.", f"Hello, I am {name}."]),
            f"Nice to meet you, {name}. How can I help you?")


def town(draw):
    name = draw.choice(list(TOWN))
    facts = TOWN[name]
    asked = draw.choice([f"Tell me about {name}.", f"What is {name} like?", f"Do you know {name}?"])
    return (asked,
            f"{name} is a town on the river {facts['river']}. It is known for {facts['goods']}. "
            f"The mayor is {facts['mayor']} and the flag is {facts['color']}.")


def creature(draw):
    name = draw.choice(list(CREATURE))
    facts = CREATURE[name]
    return (draw.choice([f"What is a {name}?", f"Tell me about the {name}.",
                         f"Do you know what a {name} is?"]),
            f"A {name} is a {facts['color']} creature. It lives in {facts['home']} and eats "
            f"{facts['food']}.")


def story(draw):
    """The animal decides its name and home, the treasure its owner, the request what happens."""
    animal, treasure = draw.choice(list(ANIMALS)), draw.choice(list(TREASURES))
    name, place = ANIMALS[animal]
    friend = TREASURES[treasure]
    article = "an" if animal[0] in "aeiou" else "a"
    if draw.random() < 0.5:
        request = draw.choice(["Tell me a story about {an} {a} that finds a {t}.",
                               "Can you tell me how {an} {a} finds a {t}?"])
        middle = f"One day {name} found a {treasure} near the {place}. It belonged to a {friend}."
    else:
        request = draw.choice(["Tell me a story about {an} {a} and a lost {t}.",
                               "I want to hear of {an} {a} and a lost {t}."])
        middle = (f"One day a {friend} came to the {place} and cried. It had lost a {treasure}, "
                  f"and {name} looked for it until night.")
    return (request.format(an=article, a=animal, t=treasure),
            f"Once there was {article} {animal} called {name} who lived by a {place}. {middle} "
            f"{name} gave the {treasure} to the {friend}, and they became good friends. "
            "They were happy ever after.")


def fact(draw):
    question, sentence, _, _ = choice.one_step(draw)
    return question, sentence


TOPICS = [talk, talk, talk, feeling, introduction, town, creature, fact, story, story]


def sample(draw):
    pairs = [draw.choice(TOPICS)(draw) for _ in range(draw.choice([1, 1, 2, 3]))]
    # Single turns are few, and each should be known: they are all for training.
    held_out = len(pairs) > 1 and not draw.in_training("chat", pairs)
    if held_out != draw.held_out:
        return None
    messages = []
    for question, reply in pairs[:-1]:
        messages += [user(question), assistant(reply)]
    question, reply = pairs[-1]
    thinking = draw.thinks()
    return Item(messages + [user(question)], assistant(reply, reasoning="" if thinking else None),
                reply, thinking=thinking)
