"""Dialogs with tools: choose the tool, fill the arguments, use the observation, refuse what the
policy forbids. Functions go by several names, each with its own names of parameters."""
import json
from dataclasses import dataclass

from tasks import Item, assistant, user
from world import GOODS, PEOPLE, TOWNS

DAYS = ["today", "tomorrow", "on Monday", "on Friday", "on Sunday"]
NOTES = ["I am late", "Call me", "Come home", "Dinner is ready", "The train is late", "Thank you",
         "See you soon", "Bring tea"]
SKIES = ["sunny", "rainy", "cloudy", "windy", "snowy"]
DESKS = ["You help at the inn.", "You help at the shop.", "You help at the town office.",
         "You are the assistant of a small shop.", "You answer the guests."]


@dataclass
class Kind:
    """One function of the family: its names, and for each parameter its names and JSON type."""
    names: list
    description: str
    parameters: dict


KINDS = {
    "weather": Kind(["get_weather", "find_weather", "weather"], "Weather of a town.",
                    {"town": (["town", "place"], "string"), "day": (["day", "date"], "string")}),
    "order": Kind(["get_order", "find_order", "order_status"], "Status of an order.",
                  {"order": (["order", "order_id", "number"], "string")}),
    "cancel": Kind(["cancel_order", "stop_order", "cancel"], "Cancel an order.",
                   {"order": (["order", "order_id", "number"], "string")}),
    "refund": Kind(["refund_order", "pay_back", "refund"], "Pay back coins.",
                   {"order": (["order", "order_id"], "string"),
                    "coins": (["coins", "amount"], "integer")}),
    "room": Kind(["book_room", "get_room", "room"], "Book a room.",
                 {"town": (["town", "place"], "string"),
                  "guests": (["guests", "people"], "integer")}),
    "note": Kind(["send_note", "send_message", "note"], "Send a message.",
                 {"name": (["name", "to"], "string"), "text": (["text", "message"], "string")}),
    "price": Kind(["get_price", "find_price", "price"], "Price of an item.",
                  {"item": (["item", "goods"], "string")}),
    "buy": Kind(["buy_item", "place_order", "buy"], "Buy an item.",
                {"item": (["item", "goods"], "string"),
                 "count": (["count", "number"], "integer")}),
}


class Toolbox:
    """The functions that one dialog offers, each under the names drawn for it."""

    def __init__(self, draw, needed):
        others = [kind for kind in KINDS if kind not in needed]
        kinds = needed + draw.sample(others, draw.choice([1, 1, 2]))
        draw.shuffle(kinds)
        self.names = {kind: self._named(KINDS[kind], draw.randrange(3)) for kind in kinds}

    @staticmethod
    def _named(kind, variant):
        """(name of the function, {parameter: its name}); every variant has names of its own."""
        return kind.names[variant], {key: names[variant % len(names)]
                                     for key, (names, _) in kind.parameters.items()}

    def schemas(self):
        return [self._schema(KINDS[kind], *named) for kind, named in self.names.items()]

    @staticmethod
    def _schema(kind, name, keys):
        properties = {keys[key]: {"type": type_}
                      for key, (_, type_) in kind.parameters.items()}
        return {"type": "function", "function": {
            "name": name, "description": kind.description,
            "parameters": {"type": "object", "properties": properties,
                           "required": list(properties)}}}

    def call(self, kind, **values):
        name, keys = self.names[kind]
        return {"name": name, "arguments": {keys[key]: value for key, value in values.items()}}


def _ask(call):
    return assistant("", reasoning=f"I call {call['name']}.",
                     tool_calls=[{"type": "function", "function": call}])


def _observe(**values):
    return {"role": "tool", "content": json.dumps(values)}


def _order(draw):
    return draw.choice("ABCDEFGH") + str(draw.randint(100, 999))


@dataclass
class Story:
    """What happens: kinds needed, the policy, the turns, and what decides the split."""
    needed: list
    policy: str
    turns: object       # Toolbox -> list of messages
    key: tuple


def _single_call(draw, kind, text, values, observation, reply, policy="", refusal=None):
    """One request, one call, one observation, one reply; or a refusal at once."""
    def turns(box):
        messages = [user(text)]
        if refusal is not None:
            return messages + [refusal]
        return messages + [_ask(box.call(kind, **values)), _observe(**observation),
                           assistant(reply, reasoning="I have the result.")]
    return Story([kind], policy, turns, (kind, tuple(values.values())))


def weather(draw):
    town, day, sky = draw.choice(TOWNS), draw.choice(DAYS), draw.choice(SKIES)
    text = draw.choice([f"What is the weather in {town} {day}?",
                        f"How is the weather in {town} {day}?",
                        f"Will it be {draw.choice(SKIES)} in {town} {day}?",
                        f"Tell me the weather in {town} {day}."])
    degrees = draw.randint(2, 39)
    return _single_call(draw, "weather", text, dict(town=town, day=day.removeprefix("on ")),
                        dict(sky=sky, degrees=degrees),
                        f"It will be {sky} in {town} {day}, with {degrees} degrees.")


def order(draw):
    number, status = _order(draw), draw.choice(["open", "shipped", "packed", "lost"])
    text = draw.choice([f"Where is my order {number}?", f"What is the status of order {number}?",
                        f"Please look up order {number}."])
    return _single_call(draw, "order", text, dict(order=number), dict(order=number, status=status),
                        f"Your order {number} is {status}.")


def price(draw):
    item, coins = draw.choice(GOODS), draw.randint(2, 99)
    text = draw.choice([f"How much is the {item}?", f"What is the price of {item}?",
                        f"What does {item} cost?"])
    return _single_call(draw, "price", text, dict(item=item), dict(item=item, coins=coins),
                        f"The price of {item} is {coins} coins.")


def buy(draw):
    item, count, number = draw.choice(GOODS), draw.randint(2, 99), _order(draw)
    text = draw.choice([f"I want to buy {count} {item}.", f"Please order {count} {item} for me.",
                        f"Buy {item} for me, {count} of them."])
    return _single_call(draw, "buy", text, dict(item=item, count=count), dict(order=number),
                        f"Done. Your order is {number}.")


def note(draw):
    name, message = draw.choice(PEOPLE), draw.choice(NOTES)
    text = draw.choice([f'Send {name} the message "{message}".', f'Tell {name}: "{message}".',
                        f'Please write "{message}" to {name}.'])
    return _single_call(draw, "note", text, dict(name=name, text=message), dict(sent=True),
                        f"Your message to {name} is sent.")


def room(draw):
    town, guests, limit = draw.choice(TOWNS), draw.randint(1, 9), draw.randint(3, 7)
    text = draw.choice([f"Book a room in {town} for {guests} people.",
                        f"I need a room in {town} for {guests} people.",
                        f"We are {guests} people and need a room in {town}."])
    policy, refusal = "", None
    if draw.random() < 0.6:
        policy = f"Policy: a room is for {limit} people at most."
        if guests > limit:
            refusal = assistant("I am sorry, the policy does not allow that.",
                                reasoning=f"{guests} is more than {limit}. The policy forbids it.")
    return _single_call(draw, "room", text, dict(town=town, guests=guests),
                        dict(room=draw.randint(1, 60)), f"Your room in {town} is booked.", policy,
                        refusal)


def refund(draw):
    number, coins = _order(draw), draw.randint(2, 98)
    text = draw.choice([f"I want {coins} coins back for order {number}.",
                        f"Please pay back {coins} coins for order {number}.",
                        f"Refund {coins} coins of order {number}."])
    policy, refusal = "", None
    if draw.random() < 0.6:
        limit = draw.choice([20, 30, 40, 50, 60, 70])
        policy = f"Policy: refunds are {limit} coins at most."
        if coins > limit:
            refusal = assistant("I am sorry, the policy does not allow that.",
                                reasoning=f"{coins} is more than {limit}. The policy forbids it.")
    return _single_call(draw, "refund", text, dict(order=number, coins=coins), dict(paid=coins),
                        f"You get {coins} coins back for order {number}.", policy, refusal)


def cancel(draw):
    """Two calls: the status decides whether the policy allows the second."""
    number = _order(draw)
    shipped = draw.random() < 0.4
    status = "shipped" if shipped else draw.choice(["open", "packed"])
    text = draw.choice([f"Cancel order {number}.", f"Please cancel my order {number}.",
                        f"I do not want order {number} any more."])

    def turns(box):
        messages = [user(text), _ask(box.call("order", order=number)),
                    _observe(order=number, status=status)]
        if shipped:
            return messages + [assistant("I am sorry, the policy does not allow that.",
                                         reasoning="It is shipped. The policy forbids it.")]
        return messages + [_ask(box.call("cancel", order=number)), _observe(canceled=True),
                           assistant(f"Your order {number} is canceled.",
                                     reasoning="I have the result.")]
    return Story(["order", "cancel"], "Policy: check an order first. Never cancel a shipped order.",
                 turns, ("cancel", number))


STORIES = [weather, order, price, buy, note, room, refund, cancel, cancel]


def _complete(draw):
    """(what comes before, the toolbox, the turns) of a story that belongs to the split."""
    story = draw.choice(STORIES)(draw)
    box = Toolbox(draw, story.needed)
    turns = story.turns(box)
    if not draw.in_split(story.key, sorted(box.names.items())):
        return None
    system = " ".join([draw.choice(DESKS), story.policy]).strip()
    greeting = []
    if draw.random() < 0.25:
        greeting = [user(draw.choice(["Hello!", "Hi!", "Good day."])),
                    assistant("Hello! How can I help you today?")]
    return [{"role": "system", "content": system}] + greeting, box, turns


def sample(draw):
    drawn = _complete(draw)
    if drawn is None:
        return None
    messages, box, turns = drawn
    thinking = draw.thinks()
    if not thinking:
        for message in turns:
            message.pop("reasoning_content", None)
    ends = [i for i, message in enumerate(turns) if message["role"] == "assistant"]
    # In training the last turn: the turns of tools before it are learned with it.
    end = draw.choice(ends) if draw.held_out else ends[-1]
    answer = turns[end]
    calls = answer.get("tool_calls")
    expected = calls[0]["function"] if calls else answer["content"]
    return Item(messages + turns[:end], answer, expected, box.schemas(), thinking)
