"""Random Jinja expressions over a fixed set of variables; random_template.py has the statements."""

VARIABLES = {
    "text": "Hello World, hello again",
    "empty": "",
    "padded": "  a b\t\n",
    "unicode": "ÄÖ straße ΟΔΟΣ 日本 🙂 e\u0301",
    "lines": "one\n\ntwo\r\nthree",
    "marked": "<think>a</think>b<|user|>",
    "quotes": 'it\'s "q" \\ \x07\u200b',
    "n": 7,
    "zero": 0,
    "negative": -3,
    "real": 2.5,
    "small": 1e-7,
    "large": 1e20,
    "yes": True,
    "no": False,
    "nothing": None,
    "numbers": [3, 1, 2, 3],
    "mixed": [1, "a", None, 2.5, [1], {"k": "v"}],
    "words": ["b", "A", "a", "C"],
    "none_yet": [],
    "map": {"b": 1, "a": "x", "items": 2, "nested": {"list": [1, 2, {"deep": "end"}]}},
    "empty_map": {},
    "people": [
        {"name": "Bo", "age": 3, "tags": ["x", "y"]},
        {"name": "al", "age": 30},
        {"name": "Cy", "age": 3, "tags": []},
    ],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4}]}]}, {"v": 5}],
    "digits": "042",
    "number_text": " 3.7 ",
    "code": "a,b,,c",
}
TEXTS = [
    "text",
    "empty",
    "padded",
    "unicode",
    "lines",
    "marked",
    "quotes",
    "digits",
    "number_text",
    "code",
]
NUMBERS = ["n", "zero", "negative", "real", "small", "large", "yes", "no"]
LISTS = ["numbers", "mixed", "words", "none_yet", "people", "tree"]
LITERALS = [
    "'a'",
    "''",
    "'</think>'",
    "'\\n'",
    "'x y'",
    '"it\'s"',
    "','",
    "' '",
    "'é'",
    "'l'",
    "'%s'",
    "'%d|%s'",
    "'{}-{}'",
    "'{0}{a}'",
    "'%5.1f'",
    "'%-4s|'",
]

MAPPINGS = [
    "map",
    "people[0]",
    "people[1]",
    "map.nested",
    "mixed[5]",
    "missing",
    "text",
    "empty_map",
]
ATTRIBUTES = ["a", "b", "name", "age", "nested", "list", "zz", "__class__", "k"]
INDEXABLE = ["map", "people[0]", "mixed", "numbers", "text", "missing", "words"]
FORBIDDEN = ["numbers.append(1)", "map.update(a=1)", "map.pop(1)", "words.sort()"]
KEYS = ["1", "'a'", "text"]
FILTERS_OF_ANYTHING = [
    "string",
    "tojson",
    "default(1)",
    "first",
    "last",
    "list",
    "length",
    "int",
    "join",
    "e",
    "safe",
    "upper",
    "trim",
    "sort",
    "abs",
    "float",
    "count",
    "d(0, true)",
    "max",
    "title",
]


class Expressions:
    """Draws Jinja expressions, many of which fail. A budget bounds their depth."""

    def __init__(self, rng):
        self.rng = rng
        self.names = []  # set by the template so far
        self.macros = []
        self.loops = 0
        self.namespaces = []
        self.recursive = 0

    def pick(self, *choices):
        return self.rng.choice(choices)()

    def any_of(self, values):
        return self.rng.choice(values)

    def between(self, left, operators, right):
        return f"({left} {self.any_of(operators)} {right})"

    def range_with_step(self):
        step = self.any_of(["1", "2", "-1", "3"])
        return f"range({self.rng.randint(0, 3)}, {self.rng.randint(0, 12)}, {step})"

    # Expressions. The budget bounds their depth.

    def expression(self, budget=3):
        if budget <= 0:
            return self.atom()
        b = budget - 1
        return self.pick(
            self.atom,
            self.atom,
            lambda: self.text(b),
            lambda: self.text(b),
            lambda: self.number(b),
            lambda: self.boolean(b),
            lambda: self.sequence(b),
            lambda: f"({self.expression(b)} if {self.boolean(b)} else {self.expression(b)})",
            lambda: f"({self.expression(b)} if {self.boolean(b)})",
            lambda: f"({self.expression(b)} {self.any_of(['and', 'or'])} {self.expression(b)})",
            lambda: f"{self.mapping(b)}",
            lambda: self.attribute(b),
            lambda: self.any_filter(b),
            lambda: self.between(
                self.expression(b), ["+", "*", "-", "%", "//", "/"], self.expression(b)
            ),
        )

    def atom(self):
        choices = [
            lambda: self.any_of(list(VARIABLES)),
            lambda: self.any_of(LITERALS),
            lambda: self.any_of(TEXTS),
            lambda: str(self.rng.randint(-3, 12)),
            lambda: self.any_of(["true", "false", "none", "1.5", "0.0", "1e3", "missing"]),
        ]
        if self.names:
            choices += [lambda: self.any_of(self.names)] * 3
        if self.loops:
            choices += [
                lambda: "loop."
                + self.any_of(
                    [
                        "index",
                        "index0",
                        "first",
                        "last",
                        "length",
                        "revindex",
                        "revindex0",
                        "depth",
                        "depth0",
                        "previtem",
                        "nextitem",
                    ]
                )
            ] * 2
        if self.namespaces:
            choices += [
                lambda: self.any_of(self.namespaces) + "." + self.any_of(["a", "b", "c"])
            ] * 2
        return self.rng.choice(choices)()

    def text(self, b=2):
        if b <= 0:
            return self.any_of(TEXTS + LITERALS)
        t = lambda: self.text(b - 1)
        e = lambda: self.expression(b - 1)
        n = lambda: self.any_of(["0", "1", "2", "-1", "3", "-2", "100", "n"])
        method = lambda: self.any_of(
            [
                "strip()",
                "lstrip()",
                "rstrip()",
                f"strip({t()})",
                "rstrip('\\n')",
                "lstrip(' H')",
                "upper()",
                "lower()",
                "title()",
                "capitalize()",
                f"split({t()})",
                "split()",
                f"split({t()}, {n()})",
                f"rsplit({t()}, {n()})",
                f"rsplit(none, {n()})",
                f"split(none, {n()})",
                "splitlines()",
                "splitlines(true)",
                f"replace({t()}, {t()})",
                f"replace({t()}, {t()}, {n()})",
                f"startswith({t()})",
                f"endswith({t()})",
                f"startswith(('a', {t()}))",
                f"find({t()})",
                f"rfind({t()})",
                f"index({t()})",
                f"count({t()})",
                f"join({self.sequence(b - 1)})",
                f"partition({t()})",
                f"rpartition({t()})",
                f"removeprefix({t()})",
                f"removesuffix({t()})",
                f"center({n()})",
                f"ljust({n()}, '*')",
                f"rjust({n()})",
                f"zfill({n()})",
                "isalpha()",
                "isalnum()",
                "isspace()",
                "islower()",
                "isupper()",
                "isdecimal()",
                "isascii()",
                f"format({e()}, {e()}, a={e()})",
            ]
        )
        a_filter = lambda: self.any_of(
            [
                "trim",
                f"trim({t()})",
                "upper",
                "lower",
                "title",
                "capitalize",
                f"replace({t()}, {t()})",
                f"replace({t()}, {e()}, {n()})",
                "string",
                f"default({e()})",
                f"default({e()}, true)",
                "e",
                "indent",
                f"indent({n()}, {self.boolean(0)}, {self.boolean(0)})",
                "indent('> ', first=true)",
                f"format({e()})",
                f"format({e()}, {e()})",
                "reverse",
                "first",
                "last",
                "length",
                "list",
                "forceescape",
            ]
        )
        return self.pick(
            lambda: f"({t()} ~ {e()})",
            lambda: f"({t()} + {t()})",
            lambda: f"({e()} ~ {e()} ~ {t()})",
            lambda: f"{self.simple_text()}.{method()}",
            lambda: f"({t()})|{a_filter()}",
            lambda: f"({e()})|{a_filter()}",
            lambda: f"({t()})[{n()}]",
            lambda: f"({t()})[{self.slice()}]",
            lambda: f"({t()} * {n()})",
            lambda: f"({t()} % {e()})",
            lambda: f"('%s %s' % ({e()}, {e()}))",
            lambda: f"({self.any_of(LITERALS)} % ({e()},))",
            lambda: f"({e()})|tojson{self.json_arguments()}",
            lambda: self.call(b),
        )

    def simple_text(self):
        return self.any_of(
            TEXTS + ["'a b a'", "'Mixed Case'", "(n ~ text)", "people[0].name"] + self.names
        )

    def slice(self):
        part = lambda: self.any_of(["", "", "0", "1", "2", "-1", "-2", "5", "n"])
        return self.any_of(
            [
                f"{part()}:{part()}",
                f"{part()}:{part()}:{self.any_of(['1', '2', '-1', '-2', ''])}",
                "::-1",
            ]
        )

    def json_arguments(self):
        return self.any_of(
            [
                "",
                "",
                "(ensure_ascii=true)",
                "(indent=2)",
                "(indent=0)",
                "(false, 1)",
                "(separators=(',', ':'))",
                "(sort_keys=true)",
                "(indent='--', separators=(';', '='))",
            ]
        )

    def call(self, b):
        if not self.macros:
            return self.text(b - 1)
        name, parameters = self.any_of(self.macros)
        arguments = [
            self.expression(b - 1)
            for _ in range(self.rng.randint(0, len(parameters) + (self.rng.random() < 0.2)))
        ]
        rest = parameters[len(arguments) :]
        arguments += [f"{p}={self.expression(b - 1)}" for p in rest if self.rng.random() < 0.5]
        if self.rng.random() < 0.1:
            arguments.append(f"extra={self.expression(0)}")
        return f"{name}({', '.join(arguments)})"

    def number(self, b=2):
        if b <= 0:
            return self.any_of(NUMBERS + ["1", "2", "-5", "10"])
        n = lambda: self.number(b - 1)
        return self.pick(
            lambda: f"({n()} {self.any_of(['+', '-', '*', '/', '//', '%'])} {n()})",
            lambda: f"(-{self.any_of(NUMBERS)})",
            lambda: f"({self.sequence(b - 1)})|length",
            lambda: f"({self.expression(b - 1)})|int",
            lambda: f"({self.expression(b - 1)})|float",
            lambda: f"({n()})|abs",
            lambda: f"({n()})|round"
            + self.any_of(["", "(1)", "(2)", "(0)", "(method='ceil')", "(1, 'floor')"]),
            lambda: f"({self.sequence(b - 1)})|sum",
            lambda: f"(2 ** {self.rng.randint(0, 9)})",
            lambda: f"({self.expression(b - 1)})|int(default={self.rng.randint(0, 3)})",
        )

    def boolean(self, b=2):
        if b <= 0:
            return self.any_of(["true", "false", "yes", "no", "text", "none_yet", "n > 3"])
        e = lambda: self.expression(b - 1)
        test = lambda: self.any_of(
            [
                "defined",
                "undefined",
                "none",
                "string",
                "mapping",
                "sequence",
                "iterable",
                "number",
                "integer",
                "float",
                "boolean",
                "true",
                "false",
                "lower",
                "upper",
                "odd",
                "even",
                f"divisibleby {self.any_of(['2', '3', 'zero'])}",
                f"eq({e()})",
                f"ne {self.any_of(NUMBERS)}",
                "in numbers",
                f"in({self.sequence(b - 1)})",
                "callable",
                f"gt({self.number(0)})",
                "escaped",
                "sameas true",
                "sameas(none)",
            ]
        )
        return self.pick(
            lambda: f"({e()} {self.any_of(['==', '!=', '<', '<=', '>', '>='])} {e()})",
            lambda: f"({e()} is {test()})",
            lambda: f"({e()} is not {test()})",
            lambda: f"({e()} in {self.sequence(b - 1)})",
            lambda: f"({self.text(b - 1)} not in {self.text(b - 1)})",
            lambda: f"(not {e()})",
            lambda: f"({self.boolean(b - 1)} {self.any_of(['and', 'or'])} {self.boolean(b - 1)})",
            lambda: f"({self.number(b - 1)} < {self.number(b - 1)} <= {self.number(b - 1)})",
            lambda: f"({e()} in {self.mapping(b - 1)})",
        )

    def sequence(self, b=2):
        if b <= 0:
            return self.any_of(LISTS + ["[1, 'x']", "range(3)", "(1, 2)", "[]"])
        e = lambda: self.expression(b - 1)
        s = lambda: self.sequence(b - 1)
        a_filter = lambda: self.any_of(
            [
                "list",
                "sort",
                "sort(reverse=true)",
                "unique|list",
                "reverse|list",
                "map('string')|list",
                "map('upper')|list",
                "map('length')|list",
                "map(attribute='name')|list",
                "map(attribute='tags.0', default='-')|list",
                "map(attribute='k')|list",
                "select|list",
                "reject|list",
                "select('string')|list",
                "reject('none')|list",
                f"select('eq', {e()})|list",
                "selectattr('name')|list",
                "selectattr('age', 'gt', 5)|map(attribute='name')|list",
                "rejectattr('tags')|list",
                "rejectattr('name', 'in', ['Bo'])|list",
                "selectattr('tags', 'defined')|list",
                "sort(attribute='name')",
                "sort(attribute='age,name')",
                "sort(case_sensitive=true)",
                "map('default', 'd')|list",
                "map('int')|map('string')|list",
                "map('trim')|list",
                f"map('replace', 'a', {self.text(0)})|list",
                "unique(case_sensitive=true)|list",
                "unique(attribute='age')|list",
                "join",
                f"join({self.text(0)})",
                "join(', ', attribute='name')",
                "first",
                "last",
                "min",
                "max",
                "max(attribute='age')",
                "items|list",
                "dictsort",
                "dictsort(reverse=true)",
                "dictsort(by='value')",
                "sum(attribute='age')",
                "sum(start=10)",
                "select('defined')|first",
                "map('upper')|join('-')",
                "tojson",
                "string",
            ]
        )
        return self.pick(
            lambda: f"[{', '.join(e() for _ in range(self.rng.randint(0, 3)))}]",
            lambda: f"({e()}, {e()})",
            lambda: f"({s()})|{a_filter()}",
            lambda: f"({s()})|{a_filter()}",
            lambda: f"({s()} + {s()})",
            lambda: f"({s()})[{self.slice()}]",
            lambda: f"range({self.rng.randint(-1, 6)})",
            lambda: self.range_with_step(),
            lambda: f"{self.mapping(b - 1)}.{self.any_of(['keys()', 'values()', 'items()'])}|list",
            lambda: f"{self.simple_text()}.split({self.text(0)})",
            lambda: self.any_of(LISTS),
            lambda: f"({s()} * {self.rng.randint(0, 2)})",
        )

    def mapping(self, b=2):
        if b <= 0:
            return self.any_of(["map", "empty_map", "people[0]", "{'a': 1}"])
        e = lambda: self.expression(b - 1)
        key = lambda: self.any_of(["'a'", "'b'", "1", "none", "text", "'items'", "1.0", "true"])
        return self.pick(
            lambda: "{" + ", ".join(f"{key()}: {e()}" for _ in range(self.rng.randint(0, 3))) + "}",
            lambda: self.mapping(0),
            lambda: f"dict({self.mapping(b - 1)}, a={e()})",
            lambda: f"dict(b={e()})",
            lambda: f"dict([('x', {e()})])",
            lambda: f"{self.mapping(0)}",
        )

    def attribute(self, b):
        return self.pick(
            lambda: self.any_of(MAPPINGS) + "." + self.any_of(ATTRIBUTES),
            lambda: f"{self.any_of(INDEXABLE)}[{self.expression(b - 1)}]",
            lambda: f"{self.mapping(b - 1)}.get({self.any_of(KEYS)}{self.any_of(['', ', 5'])})",
            lambda: f"{self.sequence(0)}.index({self.expression(b - 1)})",
            lambda: f"{self.sequence(0)}.count({self.expression(b - 1)})",
            lambda: self.any_of(FORBIDDEN),
            lambda: f"map.nested.list[{self.rng.randint(-4, 3)}].deep",
        )

    def any_filter(self, b):
        return f"({self.expression(b)})|{self.any_of(FILTERS_OF_ANYTHING)}"
