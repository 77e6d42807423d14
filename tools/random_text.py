"""Random strings that are hard on a tokenizer, and text of our own to train small ones on."""
import random

# Latin, Greek, Cyrillic, Hebrew and Arabic, Indic, Thai, Hangul, kana, Han, emoji, marks, digits.
RANGES = [
    (0x20, 0x7F), (0x80, 0x250), (0x370, 0x400), (0x400, 0x530), (0x590, 0x700), (0x900, 0xE00),
    (0xE00, 0xE80), (0x1100, 0x1200), (0xAC00, 0xD7A4), (0x3040, 0x3100), (0x4E00, 0xA000),
    (0x1F300, 0x1FAFF), (0x300, 0x370), (0x2000, 0x2070), (0xFF00, 0xFFEF), (0x660, 0x66A),
    (0x1D400, 0x1D800), (0x20000, 0x20100)]
SPACES = (" \t\n\r\v\f\x85\xa0\u1680\u180e\u2003\u2028\u2029\u202f\u205f\u3000"  # and no spaces:
          "\u200b\ufeff")
# Case folding, composition, characters newer than the tables of some libraries, controls.
ODD = ("ſK'’sStTdDmMllveVErRİıßŉǆﬁﬆ\u0301\u0345\u0334\u1df6"
       "\u1100\u1161\u11a7\u11a8각ガｶﾞ㋿"
       "\u0897\u1c89\ua7da\U00010d40\U00011935\U00011930\U00031350\U0001e5f0\x00\x7f\xad")

PROSE = """\
The harbour was quiet when Mira counted the crates again: 14 of oranges, 7 of salt, 120 of nails.
She'd written the numbers twice, and they still didn't agree with what the captain's list said. \
"We'll find it," said Tom, who hadn't slept since Tuesday; "I've looked everywhere but the hold."
It's a long way down there, he thought, and the lamp won't last. \
They're waiting for us, aren't they?

\tA list of what they found (in order):
\t1. a rope, 25.5 m long, worth $3.20;
\t2. two letters from 1987, unread;
\t3. a clock that ran backwards --- or so it seemed!!!

def count(crates, limit=1000):
    total = 0
    for crate in crates:
        if crate["weight_kg"] > limit:
            raise ValueError(f"crate {crate['id']} is too heavy")
        total += crate["weight_kg"]
    return total    # never negative

{"name": "harbour", "tools": [{"id": 12345678, "open": true}], "note": null}\r\n\r\n
Der Hafen lag still, als Mira die Kisten noch einmal zählte; überall roch es nach Salz und Öl.
Le port était calme, et l'été touchait à sa fin. El niño comió piñas y soñó con el océano.
Гавань была тиха, когда Мира снова пересчитала ящики: двадцать семь, а не двадцать шесть.
港口很安静。米拉又数了一遍箱子，一共二十七个，而不是二十六个。港は静かだった。ミラはもう一度箱を数えた。
항구는 조용했다. 미라는 상자를 다시 세었다. كان الميناء هادئا عندما عدت ميرا الصناديق مرة أخرى.
Prices rose by 3%, then 12.5%, then fell: 1,234,567.89 -> 999,999.00 \
(see §4, ¶2, note ½). 🚢⚓️👩‍🔧🏴‍☠️
"""


class RandomText:
    """Random strings of several kinds. The same seed, markers and prose give the same strings."""

    def __init__(self, seed, markers, prose):
        self.random = random.Random(seed)
        self.markers = markers or ["<|none|>"]
        self.prose = prose
        self.kinds = [self.of_unicode, self.of_scripts, self.of_ascii, self.of_spaces, self.of_odd,
                      self.of_prose, self.of_markers]

    def string(self):
        return self.random.choice(self.kinds)()

    def length(self):
        return int(self.random.expovariate(1 / 16))

    def character(self, first, end):
        code_point = self.random.randrange(first, end)
        return "\ufffd" if 0xD800 <= code_point < 0xE000 else chr(code_point)

    def of_unicode(self):
        return "".join(self.character(0, 0x110000) for _ in range(self.length()))

    def of_scripts(self):
        scripts = self.random.choices(RANGES, k=2)
        return "".join(self.character(*self.random.choice(scripts)) for _ in range(self.length()))

    def of_ascii(self):
        return "".join(self.character(0, 0x80) for _ in range(self.length()))

    def of_spaces(self):
        kinds = self.random.choices([SPACES, " ", "\n", "a1.é中'"], [4, 1, 1, 3], k=self.length())
        return "".join(self.random.choice(kind) for kind in kinds)

    def of_odd(self):
        return "".join(self.random.choice(ODD) for _ in range(self.length()))

    def of_prose(self):
        begin = self.random.randrange(len(self.prose))
        words = self.prose[begin : begin + 4 * self.length()]
        return words.swapcase() if self.random.random() < 0.2 else words

    def of_markers(self):
        parts = []
        for _ in range(self.random.randrange(1, 6)):
            marker = self.random.choice(self.markers)
            cut = self.random.randrange(len(marker) + 1)
            between = self.random.choice([self.of_ascii, self.of_spaces, self.of_prose, str])
            parts += [self.random.choice([marker, marker, marker[:cut], marker[cut:]]), between()]
        return "".join(parts)
