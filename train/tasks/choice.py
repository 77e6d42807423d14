"""Questions with four options about the towns and creatures of the world, one or two facts deep."""
from tasks import Item, assistant, user
from world import COLORS, CREATURE, FOODS, GOODS, HOMES, PEOPLE, RIVERS, TOWN

LETTERS = "ABCD"

# relation -> (all values, questions, the fact as a sentence)
TOWN_RELATIONS = {
    "river": (RIVERS, ["Which river flows through {s}?", "On which river does {s} lie?",
                       "What is the river of {s} called?"],
              "The river of {s} is {v}."),
    "mayor": (PEOPLE, ["Who is the mayor of {s}?", "What is the name of the mayor of {s}?",
                       "Who leads the town of {s}?"],
              "The mayor of {s} is {v}."),
    "goods": (GOODS, ["What is {s} known for?", "What do people make in {s}?",
                      "For which goods is {s} famous?"],
              "{s} is known for {v}."),
    "color": (COLORS, ["What color is the flag of {s}?", "Which color does the flag of {s} have?"],
              "The flag of {s} is {v}."),
}
CREATURE_RELATIONS = {
    "food": (FOODS, ["What does a {s} eat?", "What is the food of a {s}?"], "A {s} eats {v}."),
    "home": (HOMES, ["Where does a {s} live?", "Where can you find a {s}?"], "A {s} lives in {v}."),
    "color": (COLORS, ["What color is a {s}?", "Which color does a {s} have?"], "A {s} is {v}."),
}
# A town named by another of its facts, and that fact as a sentence.
DESCRIPTIONS = {
    "goods": ("the town known for {v}", "{s} is known for {v}."),
    "river": ("the town on the river {v}", "The river of {s} is {v}."),
    "mayor": ("the town of mayor {v}", "The mayor of {s} is {v}."),
}


def one_step(draw):
    """(question, reasoning, right value, all values)"""
    facts, relations = draw.choice([(TOWN, TOWN_RELATIONS), (CREATURE, CREATURE_RELATIONS)])
    subject, relation = draw.choice(list(facts)), draw.choice(list(relations))
    values, questions, sentence = relations[relation]
    value = facts[subject][relation]
    return (draw.choice(questions).format(s=subject), sentence.format(s=subject, v=value), value,
            values)


def two_steps(draw):
    town = draw.choice(list(TOWN))
    known, relation = draw.sample(list(DESCRIPTIONS), 2)
    relation = draw.choice([relation, "color"])
    description, first = DESCRIPTIONS[known]
    values, questions, second = TOWN_RELATIONS[relation]
    value = TOWN[town][relation]
    question = questions[0].format(s=description.format(v=TOWN[town][known]))
    reasoning = " ".join([first.format(s=town, v=TOWN[town][known]),
                          second.format(s=town, v=value)])
    return question, reasoning, value, values


# Only for training, and shares of it. From single questions a model this small learns the facts
# long before it finds the letter of an option, which takes looking back for the same words.
REPEAT_SHARE = 0.2
LOOKUP_SHARE = 0.2
VALUES = RIVERS + PEOPLE + GOODS + COLORS + FOODS + HOMES


def repeat(draw):
    """Words to be said again, so that nearly every token of the answer is found by looking back."""
    words = " ".join(
        draw.choice([draw.choice(VALUES), draw.choice(LETTERS), str(draw.randint(0, 99))])
        for _ in range(draw.randint(8, 24)))
    thinking = draw.thinks()
    return Item([user(f"Say this again: {words}.")],
                assistant(f"You said: {words}.", reasoning="" if thinking else None), words,
                thinking=thinking)


def lookup(draw):
    """Options without a question about the world, and their letters in another order."""
    options = draw.sample(VALUES, 4)
    lines = [f"- {option} {letter}" for letter, option in zip(LETTERS, options)]
    asked = draw.sample(options, 4)
    answer = ", ".join(f"{option} {LETTERS[options.index(option)]}" for option in asked)
    thinking = draw.thinks()
    return Item([user("\n".join([f"Give the letters of {', '.join(asked)}.", *lines]))],
                assistant(f"They are {answer}.", reasoning="" if thinking else None),
                answer, thinking=thinking)


def sample(draw):
    kind = 1.0 if draw.held_out else draw.random()
    if kind < REPEAT_SHARE + LOOKUP_SHARE:
        return repeat(draw) if kind < REPEAT_SHARE else lookup(draw)
    question, reasoning, value, values = (one_step if draw.random() < 0.65 else two_steps)(draw)
    options = draw.sample([other for other in values if other != value], 3)
    options.insert(draw.randrange(4), value)
    if not draw.in_split("choice", question, options):
        return None
    # The letter follows its option, so that naming the value, in the same tokens, leads to it.
    lines = [f"- {option} {letter}" for letter, option in zip(LETTERS, options)]
    letter = LETTERS[options.index(value)]
    thinking = draw.thinks()
    return Item(
        [user("\n".join([question, *lines]))],
        assistant(f"The answer is {letter}.",
                  reasoning=f"{reasoning[:-1]} {letter}." if thinking else None),
        letter, thinking=thinking)
