"""Word problems of one to three steps with numbers below 100.

The reasoning spells every step digit by digit, so that a small model has to know only the sums of
two digits, a carry and the table of products: 47+38: 7+8=15, 4+3+1=8, 85.
"""
from tasks import Item, assistant, user
from world import PEOPLE, TOWNS

THINGS = ["apples", "coins", "books", "eggs", "stones", "cards", "pears", "nuts", "shells",
          "stamps", "cakes", "keys"]
BOXES = ["bags", "boxes", "baskets", "rows", "shelves", "jars"]


def spell_sum(a, b):
    """a + b for numbers below 100, units first."""
    if a < 10 and b < 10:
        return f"{a}+{b}={a + b}"
    carry = "+1" if a % 10 + b % 10 > 9 else ""
    units = f"{a % 10}+{b % 10}={a % 10 + b % 10}"
    return f"{a}+{b}: {units}, {a // 10}+{b // 10}{carry}={(a + b) // 10}, {a + b}"


def spell_difference(a, b):
    """a - b for 0 <= b <= a < 100, units first, borrowing where needed."""
    if a < 10:
        return f"{a}-{b}={a - b}"
    borrow = a % 10 < b % 10
    top = a % 10 + (10 if borrow else 0)
    less = "-1" if borrow else ""
    units = f"{top}-{b % 10}={top - b % 10}"
    return f"{a}-{b}: {units}, {a // 10}-{b // 10}{less}={(a - b) // 10}, {a - b}"


def spell(operator, a, b):
    """(the written step, its value)"""
    if operator == "+":
        return spell_sum(a, b), a + b
    if operator == "-":
        return spell_difference(a, b), a - b
    if operator == "*":
        return f"{a}*{b}={a * b}", a * b
    return f"{a}/{b}={a // b}", a // b


# (sentences, steps): a step is (left, operator, right), where a letter is a number of the problem
# and "r" the result of the step before.
PROBLEMS = [
    (["{n} has {a} {t}.", "{m} gives {n} {b} more.", "How many {t} does {n} have now?"],
     [("a", "+", "b")]),
    (["There are {a} {t} in the shop and {b} {t} in the house.", "How many {t} are there in all?"],
     [("a", "+", "b")]),
    (["{n} has {a} {t}.", "{n} sells {b} of them.", "How many {t} are left?"],
     [("a", "-", "b")]),
    (["{n} has {a} {t} and {m} has {b}.", "How many more {t} does {n} have?"],
     [("a", "-", "b")]),
    (["{n} fills {c} {x} with {d} {t} each.", "How many {t} is that?"],
     [("c", "*", "d")]),
    (["{n} has {a} {t}.", "{n} buys {c} {x} with {d} {t} each.",
      "How many {t} does {n} have now?"],
     [("c", "*", "d"), ("a", "+", "r")]),
    (["{n} has {c} {x} with {d} {t} each.", "{n} gives {b} {t} to {m}.", "How many {t} are left?"],
     [("c", "*", "d"), ("r", "-", "b")]),
    (["{n} has {a} {t}.", "{m} has {b} more than {n}.", "How many {t} do they have together?"],
     [("a", "+", "b"), ("a", "+", "r")]),
    (["{n} has {a} {t}.", "{m} has {b} fewer than {n}.", "How many {t} do they have together?"],
     [("a", "-", "b"), ("a", "+", "r")]),
    (["A lamp costs {c} coins.", "{n} buys {d} lamps and pays with {a} coins.",
      "How many coins does {n} get back?"],
     [("c", "*", "d"), ("a", "-", "r")]),
    (["{n} has {a} {t}.", "{n} finds {b} and then loses {e}.", "How many {t} does {n} have now?"],
     [("a", "+", "b"), ("r", "-", "e")]),
    (["A cart brings {p} {t} to {w}.", "They are put into {c} {x}, the same number in each.",
      "How many {t} are in one of the {x}?"],
     [("p", "/", "c")]),
    (["{n} and {m} share {p} {t} among {c} friends.", "Each friend already has {e} {t}.",
      "How many {t} does each friend have now?"],
     [("p", "/", "c"), ("e", "+", "r")]),
    (["{n} reads {c} pages a day for {d} days and {b} pages on the last day.",
      "How many pages is that?"],
     [("c", "*", "d"), ("r", "+", "b")]),
    (["{n} buys {c} cakes for {d} coins each and a book for {e} coins.",
      "{n} had {a} coins.", "How many coins are left?"],
     [("c", "*", "d"), ("r", "+", "e"), ("a", "-", "r")]),
    (["On Monday {n} picks {a} {t}, on Tuesday {b} and on Sunday {e}.",
      "How many {t} is that in all?"],
     [("a", "+", "b"), ("r", "+", "e")]),
]


def _numbers(draw):
    quotient, divisor = draw.randint(2, 9), draw.randint(2, 9)
    return dict(a=draw.randint(3, 98), b=draw.randint(2, 60), c=divisor, d=draw.randint(2, 9),
                e=draw.randint(2, 29), p=divisor * quotient)


def _solve(steps, numbers):
    """(reasoning, result), or None if a value leaves 1..99."""
    lines, result = [], None
    for left, operator, right in steps:
        values = numbers | {"r": result}
        line, result = spell(operator, values[left], values[right])
        if not 0 < result < 100:
            return None
        lines.append(line)
    return ". ".join(lines), result


def sample(draw):
    kind = draw.randrange(len(PROBLEMS))
    sentences, steps = PROBLEMS[kind]
    numbers = _numbers(draw)
    solved = _solve(steps, numbers)
    text = " ".join(sentences)
    used = tuple(value for key, value in numbers.items() if "{" + key + "}" in text)
    if solved is None or not draw.in_split("arithmetic", kind, used):
        return None
    reasoning, result = solved
    n, m = draw.sample(PEOPLE, 2)
    question = text.format(n=n, m=m, t=draw.choice(THINGS), x=draw.choice(BOXES),
                           w=draw.choice(TOWNS), **numbers)
    final, thinking = f"The answer is {result}.", draw.thinks()
    answer = (assistant(final, reasoning=reasoning) if thinking
              else assistant(f"{reasoning}. {final}"))
    return Item([user(question)], answer, str(result), thinking=thinking)
