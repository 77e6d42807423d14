#!/usr/bin/env python3
"""Writes src/text/unicode_stand_ins_table.h: where PCRE2 and Hugging Face's tokenizers class a character differently.

Asks both engines for the general category of every code point. Needs the package tokenizers and libpcre2-8.

usage: make_unicode_stand_ins.py [OUT.h]
"""
import ctypes
import pathlib
import sys

import tokenizers
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/text/unicode_stand_ins_table.h"
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
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
    library.pcre2_match_8.argtypes = [pointer, ctypes.c_char_p, size, size, option, pointer, pointer]
    library.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(size)
    library.pcre2_get_ovector_pointer_8.argtypes = [pointer]
    return library


def pcre2(library, pattern):
    """The characters that PCRE2 matches."""
    error, offset = ctypes.c_int(), ctypes.c_size_t()
    code = library.pcre2_compile_8(pattern.encode(), len(pattern), UTF | UCP, ctypes.byref(error), ctypes.byref(offset), None)
    assert code, pattern
    data = library.pcre2_match_data_create_8(1, None)
    ends = library.pcre2_get_ovector_pointer_8(data)
    text, at, found = "".join(CHARACTERS).encode(), 0, set()
    while library.pcre2_match_8(code, text, len(text), at, NO_UTF_CHECK, data, None) > 0:
        found.update(text[ends[0] : ends[1]].decode())
        at = ends[1]
    return found


def main():
    library = pcre2_library()
    version = ctypes.create_string_buffer(64)
    library.pcre2_config_8(11, version)  # PCRE2_CONFIG_VERSION
    unicode_version = ctypes.create_string_buffer(64)
    library.pcre2_config_8(10, unicode_version)  # PCRE2_CONFIG_UNICODE_VERSION

    wanted, given = {}, {}
    for category in CATEGORIES:
        wanted.update(dict.fromkeys(oniguruma(rf"\p{{{category}}}+"), category))
        given.update(dict.fromkeys(pcre2(library, rf"\p{{{category}}}+"), category))

    def stand_in(character):
        size = len(character.encode())
        return next(c for c in CHARACTERS if len(c.encode()) == size and c not in spaces
                    and given.get(c) == wanted.get(c) == wanted[character])

    spaces = oniguruma(r"\s+") ^ pcre2(library, r"\s+")
    ranges = []
    for c in CHARACTERS:
        if wanted.get(c) == given.get(c) and c not in spaces:
            continue
        assert c in wanted, f"U+{ord(c):04X} has no category there and one here"
        replacement = stand_in(c)
        if ranges and ord(ranges[-1][1]) == ord(c) - 1 and ranges[-1][2] == replacement:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, replacement])

    rows = "".join(f"    {{0x{ord(a):04X}, 0x{ord(b):04X}, 0x{ord(s):04X}}},  // {wanted[a]}\n" for a, b, s in ranges)
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else OUT).write_text(f"""#pragma once

#include "text/unicode_stand_ins.h"

namespace ingot::text {{

// Made by tools/make_unicode_stand_ins.py: tokenizers {tokenizers.__version__} and PCRE2 {version.value.decode().split()[0]},
// whose Unicode is {unicode_version.value.decode()}.
// clang-format off
inline constexpr StandIn kStandIns[] = {{
{rows}}};
// clang-format on

}}  // namespace ingot::text
""")


if __name__ == "__main__":
    main()
