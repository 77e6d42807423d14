#!/usr/bin/env python3
"""Compares our templates with jinja2 in the settings of transformers, on random ones.

usage: check_templates_with_jinja2.py --test build/release/src/ingot_text_test [--count 20000]
                                      [--seed 1]
                                      [--keep FILE]

Needs transformers and jinja2. A grammar draws templates with variables, many of which fail while
they run; jinja2 says what comes out or that nothing does, and the test RandomTemplates compares.
Left out are what we refuse by intent (docs/formats/chat_template.md): what Python prints by its
address, integers beyond 64 bits in arithmetic, attributes of numbers and macros, tuples as keys.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from transformers.utils import chat_template_utils as hf

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


class Grammar:
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

    # Statements.

    def body(self, budget):
        return "".join(
            self.statement(budget) for _ in range(self.rng.randint(1, 4 if budget > 1 else 2))
        )

    def open(self, tag):
        return (
            "{%"
            + self.any_of(["", "", "-", "+"])
            + " "
            + tag
            + " "
            + self.any_of(["", "", "-", "+"])
            + "%}"
        )

    def data(self):
        return self.any_of(
            [
                "x",
                " ",
                "\n",
                "  \n",
                "\n  ",
                "a b\n",
                "<|user|>",
                "{ ",
                "} %",
                "\t",
                "é",
                "\n\n",
                "# ",
                "text\n    ",
            ]
        )

    def output(self, budget):
        return (
            "{{"
            + self.any_of(["", "", "-", " "])
            + " "
            + self.expression(budget)
            + " "
            + self.any_of(["", "", "-"])
            + "}}"
        )

    def statement(self, budget):
        choices = [
            self.data,
            self.data,
            lambda: self.output(3),
            lambda: self.output(2),
            lambda: self.output(3),
            lambda: self.comment(),
            self.raw,
        ]
        if budget > 0:
            b = budget - 1
            choices += [
                lambda: self.if_(b),
                lambda: self.if_(b),
                lambda: self.for_(b),
                lambda: self.for_(b),
                lambda: self.set(b),
                lambda: self.set(b),
                lambda: self.set_block(b),
                lambda: self.macro(b),
                lambda: self.filter_block(b),
                lambda: self.with_(b),
                lambda: self.namespace(b),
                lambda: self.call_block(b),
                lambda: self.generation(b),
                lambda: self.recursive_for(b),
            ]
        if self.loops:
            choices += [
                lambda: self.open("if " + self.boolean(1))
                + self.open(self.any_of(["break", "continue"]))
                + self.open("endif")
            ]
        if self.recursive and budget > 0:
            choices += [
                lambda: "{{ loop(item.c) if item.c is defined }}",
                lambda: "{{ loop(" + self.any_of(["item.c", "none_yet"]) + " or []) }}",
            ]
        return self.rng.choice(choices)()

    def comment(self):
        return self.any_of(["{# c #}", "{#- c -#}", "{# {{ x }} #}", "{#- c #}\n", "{# a\nb -#}"])

    def raw(self):
        return (
            self.open("raw").replace("+%}", "%}")
            + self.any_of(["{{ x }}", "{% y %}", "\n z ", ""])
            + self.open("endraw")
        )

    def scoped(self, function):
        saved = (list(self.names), list(self.macros), list(self.namespaces))
        result = function()
        # What was set inside is mostly invisible outside: keep some names to see that it is.
        if self.rng.random() < 0.8:
            self.names, self.macros, self.namespaces = saved
        return result

    def if_(self, b):
        text = self.open("if " + self.boolean(2)) + self.body(b)
        while self.rng.random() < 0.3:
            text += self.open("elif " + self.boolean(1)) + self.body(b)
        if self.rng.random() < 0.5:
            text += self.open("else") + self.body(b)
        return text + self.open("endif")

    def for_(self, b):
        def build():
            target = self.any_of(["i", "item", "x", "text", "k, v", "(a, b)", "p, (q, r)"])
            source = (
                f"{self.mapping(1)}.items()"
                if "," in target and self.rng.random() < 0.8
                else self.sequence(2)
            )
            condition = f" if {self.boolean(2)}" if self.rng.random() < 0.25 else ""
            head = self.open(f"for {target} in {source}{condition}")
            self.names += re.findall(r"\w+", target)
            self.loops += 1
            text = head + self.body(b)
            self.loops -= 1
            return text

        text = self.scoped(build)
        if self.rng.random() < 0.3:
            text += self.open("else") + self.scoped(lambda: self.body(b))
        return text + self.open("endfor")

    def recursive_for(self, b):
        def build():
            self.names += ["item"]
            saved, self.loops = self.loops, 1
            self.recursive += 1
            text = self.open("for item in tree recursive") + "{{ item.v }}" + self.body(b)
            self.recursive -= 1
            self.loops = saved
            return text

        return self.scoped(build) + self.open("endfor")

    def set(self, b):
        if self.namespaces and self.rng.random() < 0.4:
            attribute = self.any_of(["a", "b", "c"])
            return self.open(
                f"set {self.any_of(self.namespaces)}.{attribute} = {self.expression(2)}"
            )
        if self.rng.random() < 0.15:
            text = self.open(f"set s, t = {self.expression(1)}, {self.expression(1)}")
            self.names += ["s", "t"]
            return text
        name = self.any_of(["s", "t", "u", "text", "n", "missing"])
        text = self.open(f"set {name} = {self.expression(3)}")
        self.names.append(name)
        return text

    def set_block(self, b):
        name = self.any_of(["s", "t", "text"])
        head = self.open(f"set {name}{self.any_of(['', '', ' | upper', ' | trim | title'])}")
        loops, self.loops = self.loops, 0
        text = head + self.scoped(lambda: self.body(b)) + self.open("endset")
        self.loops = loops
        self.names.append(name)
        return text

    def macro(self, b):
        name = self.any_of(["f", "g"])
        parameters = self.any_of([[], ["p"], ["p", "q"], ["text", "n"]])
        defaults = self.rng.randint(0, len(parameters))
        head = ", ".join(
            p if i < defaults else f"{p}={self.expression(1)}" for i, p in enumerate(parameters)
        )

        def build():
            saved, self.loops, recursive, self.recursive = self.loops, 0, self.recursive, 0
            macros, self.macros = self.macros, []
            self.names += parameters + self.any_of([[], [], ["varargs"], ["kwargs"], ["caller"]])
            text = self.open(f"macro {name}({head})") + self.body(b)
            if self.rng.random() < 0.3:
                text += "{{ caller(1) if caller is defined }}"
            self.loops, self.recursive = saved, recursive
            return text + self.open("endmacro")

        text = self.scoped(build)
        self.macros.append((name, parameters))
        return text

    def call_block(self, b):
        if not self.macros:
            return self.output(2)
        name, _ = self.any_of(self.macros)

        def build():
            saved, self.loops, recursive, self.recursive = self.loops, 0, self.recursive, 0
            text = self.body(b)
            self.loops, self.recursive = saved, recursive
            return text

        return (
            self.open(
                f"call{self.any_of(['', '(y)', '(y=2)'])} {name}({self.any_of(['', '1', 'text'])})"
            )
            + self.scoped(build)
            + self.open("endcall")
        )

    def filter_block(self, b):
        loops, self.loops = self.loops, 0
        text = (
            self.open(
                "filter "
                + self.any_of(
                    ["upper", "trim", "replace('a', 'b')", "title|trim", "indent(2)", "e"]
                )
            )
            + self.scoped(lambda: self.body(b))
            + self.open("endfilter")
        )
        self.loops = loops
        return text

    def with_(self, b):
        def build():
            head = self.open(f"with s = {self.expression(2)}, w = {self.expression(1)}")
            self.names += ["s", "w"]
            return head + self.body(b) + self.open("endwith")

        return self.scoped(build)

    def namespace(self, b):
        name = self.any_of(["ns", "state"])
        text = self.open(f"set {name} = namespace(a={self.expression(1)}, b={self.expression(1)})")
        self.namespaces.append(name)
        return text

    def generation(self, b):
        def build():
            saved, self.loops, recursive, self.recursive = self.loops, 0, self.recursive, 0
            text = self.body(b)
            self.loops, self.recursive = saved, recursive
            return text

        return self.open("generation") + self.scoped(build) + self.open("endgeneration")

    def template(self):
        return "".join(
            self.statement(self.rng.randint(0, 3)) for _ in range(self.rng.randint(1, 6))
        )


# What Python prints by address, and names of ours that it has and we do not.
BY_ADDRESS = re.compile(
    r"<[\w. ]+ at 0x|<built-in|<function|<bound|<Macro|<Namespace|<LoopContext|<.*class '"
)


def integers_fit(output):
    return all(
        -(2**63) <= int(digits) < 2**63
        for digits in re.findall(r"-?\d{19,40}", output)
        if digits != "100000000000000000000"
    )


def one_case(rng, counts):
    template = Grammar(rng).template()
    case = {"template": template}
    try:
        case["output"] = hf._compile_jinja_template(template).render(**copy.deepcopy(VARIABLES))
        case["output"].encode()
    except Exception as failure:  # whatever the template makes Python do
        case.pop("output", None)
        case["error"] = type(failure).__name__
    counts[case.get("error", "rendered")] = counts.get(case.get("error", "rendered"), 0) + 1
    output = case.get("output", "")
    if BY_ADDRESS.search(output) or not integers_fit(output) or len(output) > 200000:
        counts["left out"] = counts.get("left out", 0) + 1
        return None
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--test", type=pathlib.Path, required=True, help="the program ingot_text_test"
    )
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=pathlib.Path, help="where the cases are written, to be looked at"
    )
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    counts = {}
    path = arguments.keep or pathlib.Path(tempfile.mkdtemp()) / "cases.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(VARIABLES, ensure_ascii=False) + "\n")
        for _ in range(arguments.count):
            case = one_case(rng, counts)
            if case is not None:
                file.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(
        ", ".join(
            f"{name}: {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])
        ),
        flush=True,
    )
    environment = {**os.environ, "INGOT_TEMPLATE_CASES": str(path)}
    command = [arguments.test, "--gtest_filter=ChatTemplateGolden.RandomTemplates"]
    sys.exit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
