#!/usr/bin/env python3
"""Makes src/text/unicode_stand_ins_table.h: where PCRE2 and Hugging Face's tokenizers differ.

    PYTHON make_unicode_stand_ins.py [OUT.h]

PYTHON is one that has tokenizers (tools/README.md); libpcre2-8 is loaded as well.  Both engines are
asked for the general category of every code point, and for what \\s matches.
"""
import ctypes
import pathlib
import sys

import tokenizers
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/text/unicode_stand_ins_table.h"
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp "
              "Cc Cf Co").split()
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
UTF, UCP, NO_UTF_CHECK = 0x00080000, 0x00020000, 0x40000000


def oniguruma(pattern):
    """The characters that Hugging Face's engine matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {c for word, _ in split.pre_tokenize_str("".join(CHARACTERS)) for c in word}


def pcre2_library():
    library = ctypes.CDLL("libpcre2-8.so.0")
    pointer, size, option = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
    library.pcre2_compile_8.restype = pointer
    library.pcre2_compile_8.argtypes = [ctypes.c_char_p, size, option, pointer, pointer, pointer]
    library.pcre2_match_data_create_8.restype = pointer
    library.pcre2_match_data_create_8.argtypes = [option, pointer]
    library.pcre2_match_8.argtypes = [pointer, ctypes.c_char_p, size, size, option, pointer,
                                      pointer]
    library.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(size)
    library.pcre2_get_ovector_pointer_8.argtypes = [pointer]
    return library


def pcre2(library, pattern):
    """The characters that PCRE2 matches."""
    error, offset = ctypes.c_int(), ctypes.c_size_t()
    code = library.pcre2_compile_8(pattern.encode(), len(pattern), UTF | UCP, ctypes.byref(error),
                                   ctypes.byref(offset), None)
    assert code, pattern
    data = library.pcre2_match_data_create_8(1, None)
    ends = library.pcre2_get_ovector_pointer_8(data)
    text, at, found = "".join(CHARACTERS).encode(), 0, set()
    while library.pcre2_match_8(code, text, len(text), at, NO_UTF_CHECK, data, None) > 0:
        found.update(text[ends[0] : ends[1]].decode())
        at = ends[1]
    return found


def versions(library):
    answers = {}
    for name, question in (("version", 11), ("unicode", 10)):
        answer = ctypes.create_string_buffer(64)
        library.pcre2_config_8(question, answer)
        answers[name] = answer.value.decode().split()[0]
    return (f"tokenizers {tokenizers.__version__}, PCRE2 {answers['version']} with Unicode "
            f"{answers['unicode']}")


def main():
    library = pcre2_library()
    wanted, given = {}, {}
    for category in CATEGORIES:
        wanted.update(dict.fromkeys(oniguruma(rf"\p{{{category}}}+"), category))
        given.update(dict.fromkeys(pcre2(library, rf"\p{{{category}}}+"), category))
    spaces = oniguruma(r"\s+") ^ pcre2(library, r"\s+")

    first_of = {}  # the first character of each size and category that both engines agree on
    for c in CHARACTERS:
        if given.get(c) == wanted.get(c) and c not in spaces:
            first_of.setdefault((len(c.encode()), wanted.get(c)), c)
    ranges = []
    for c in CHARACTERS:
        if given.get(c) == wanted.get(c) and c not in spaces:
            continue
        stand_in = first_of[len(c.encode()), wanted[c]]
        if ranges and ord(ranges[-1][1]) == ord(c) - 1 and ranges[-1][2] == stand_in:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, stand_in])

    rows = "".join(f"    {{0x{ord(first):04X}, 0x{ord(last):04X}, 0x{ord(stand_in):04X}}},"
                   f"  // {wanted[first]}\n" for first, last, stand_in in ranges)
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else OUT).write_text(f"""#pragma once

#include "text/unicode_stand_ins.h"

namespace ingot::text {{

// Made by tools/make_unicode_stand_ins.py with {versions(library)}.
// clang-format off
inline constexpr StandIn kStandIns[] = {{
{rows}}};
// clang-format on

}}  // namespace ingot::text
""")


if __name__ == "__main__":
    main()
