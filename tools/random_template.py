"""Random Jinja templates: statements around the expressions of random_expression.py."""

import re

from random_expression import Expressions


class Grammar(Expressions):
    """Draws templates; names, macros and namespaces that one sets are used further on."""

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
            self.macros = []
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
