# SPDX-License-Identifier: Apache-2.0
"""Writes texts to compare tokenizers with, as a JSON array: lines of this repository, a few of many scripts, random mixtures.
All in Unicode's composed form, which some families bring a text to first and the file format does not name. Without "</s>",
which llama.cpp takes for a control token whatever the file says."""

import json
import pathlib
import random
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = [
    "Hello, world!", "I'm you're we'll they'd it's He'S DON'T", "日本語のテキストです。東京タワーは333メートル。",
    "Привет, как дела? Всё хорошо.", "مرحبا بالعالم، كيف حالك؟", "नमस्ते दुनिया, यह एक परीक्षण है।", "สวัสดีชาวโลก",
    "안녕하세요 세계", "γειά σου Κόσμε", "שלום עולם", "Zażółć gęślą jaźń", "naïve café résumé", "👨‍👩‍👧‍👦 🇩🇪 👍🏽 😀😃",
    "x² + y² = z² ½ ¾ ①②③ ⅷ", "١٢٣٤٥ १२३ 12345 1,234.56", "a\tb\t\tc", "   leading", "trailing   ", "mid   dle", "\n\n\n",
    "\r\n\r\n x", "  \n  \n", "a\u00a0b\u2003c\u3000d", "\u200bzero\u200dwidth", "ﬁ ligature Ⅳ ㎏", "Ω≈ç√∫˜µ≤≥÷", "\0\1\2",
    "tab\x0bvt\x0cff", "\ud7ff\ue000\uffff", "𐍈𝒳𝟙𠜎", "ǅ ǈ ʰ ˈ"]
ALPHABET = list("abcXYZ012 .,;:'\"-_/\\\n\t\r()[]{}<>!?@#$%^&*+=~`|éßñøжящ日本語漢한국어العربيةहिन्दीไทยΩλ") + [
    "😀", "👍🏽", "🇩🇪", "\u00a0", "\u2003", "\u3000", "½", "²", "①", "١", "३", "ʰ", "ǅ", "\u0301", "\u200d", "\u2028",
    "𝒳", "𐍈", " ", " ", "  ", "\n\n", "'s", "'LL", "123", "▁", "<s>", "<unk>", "<eos>", "<|endoftext|>",
    "<|im_end|>", "<|eot_id|>"]
PLANES = [(0x20, 0x7f), (0xa0, 0x2ff), (0x300, 0x1fff), (0x2000, 0x2fff), (0x3000, 0x9fff), (0xa000, 0xd7ff),
          (0xe000, 0xffff), (0x10000, 0x1ffff), (0x20000, 0x10ffff)]


def main():
    pick = random.Random(7)
    files = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/*/*.cpp"), *ROOT.glob("tools/*.py")])
    lines = "\n".join(file.read_text() for file in files).split("\n")
    pick.shuffle(lines)
    texts = lines[:3000] + ["\n".join(lines[i:i + pick.randint(2, 6)]) for i in range(3000, 8000, 5)] + SAMPLES
    texts += ["".join(pick.choice(ALPHABET) for _ in range(pick.randint(1, 40))) for _ in range(6000)]
    parts = SAMPLES + lines[:400]
    for _ in range(2000):
        first, second = pick.choice(parts), pick.choice(parts)
        texts.append(first[:pick.randint(0, len(first))] + second[pick.randint(0, len(second)):])
    for _ in range(2000):
        texts.append("".join(chr(pick.randint(*pick.choice(PLANES))) for _ in range(pick.randint(1, 12))))
    json.dump([unicodedata.normalize("NFC", text) for text in texts if text], sys.stdout)


main()
