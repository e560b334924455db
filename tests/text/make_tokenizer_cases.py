#!/usr/bin/env python3
"""Writes the fixtures of tokenizer_test: strings, small tokenizers, and the ids that the PyPI package
`tokenizers` gives.

    pip install tokenizers==0.23.3
    python3 tests/text/make_tokenizer_cases.py [--count N] [--seed S] [--keep] FOLDER

FOLDER gets strings.bin and, for each tokenizer, NAME.json and NAME.ids. The tokenizers are trained
on a mixture that the script makes itself, so that nothing but the package is needed; --keep takes
the NAME.json that are there, for a longer run on other strings:

    python3 tests/text/make_tokenizer_cases.py --count 200000 --seed 7 --keep /tmp/cases
    AAH_TOKENIZER_CASES=/tmp/cases build/core/tests/text/text_tokenizer_test

strings.bin: uint32 count, then for each string uint32 length and its UTF-8. NAME.ids: uint32 count,
then for each string uint16 count and the ids as uint16; little-endian.
"""

import argparse
import json
import pathlib
import random
import struct
import sysconfig
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    "\u180e\u200b\u2060\ufeff\x1c\x1d\x1e\x1f"
)
CONTRACTIONS = "'s 'S 't 'T 're 'RE 'rE 've 'VE 'm 'M 'll 'LL 'd 'D '\u017f 'x ' '' \u2019s \u2019ll".split(" ")
EMOJI = (
    "\U0001f600 \u2764\ufe0f \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea \U0001f3f4\U000e0067\U000e0062\U000e007f "
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 1\ufe0f\u20e3 \u263a \U0001fae8"
).split(" ")
SCRIPTS = (
    "Größe naïve Ærø Ελληνικά русский язык עברית العربية हिन्दी தமிழ் ไทย 中文字符 日本語テスト カタカナ 한국어 "
    "ⅷ ½ ² ٣٤ ৭ 〇 ﬁ ß ſ İ ı ǅ ŉ ꙮ 𝔘𝔫𝔦 𐐷 Ⓐ ㎏"
).split(" ")
DECOMPOSED = [unicodedata.normalize("NFD", s) for s in SCRIPTS + ["Å é ñ ǖ ṩ ậ 각 힣"]] + [
    "\u212b", "\u2126", "q\u0307\u0323", "q\u0323\u0307", "\u0344", "\u0958", "\u1100\u1161\u11a8", "a\u0301\u0301",
    "\u0301", "\u2adc", "\U0001d15e",
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im", "<|endoftext", "<mask>", "<pad>", "<pad><pad>", "  ", "Café",
           "Cafe\u0301", "<<|endoftext|>>"]
PLAIN = [
    "In the beginning God created the heaven and the earth.", "def __init__(self, *args, **kwargs):\r\n",
    "    return self._value[i] + 1\n", "1234567890", "3.14159e-10", "https://example.com/a?b=c&d=%20", "{}[]()<>;:,.",
    "the", "The", "THE", "don't", "we'll've", "I'M", "x = y\t# comment", "=====", "-----", "!!!???", "\\n", "\"quoted\"",
]


def training_text(generator):
    """Words often enough to be worth merges, in several scripts, with code and spaces."""
    pieces = PLAIN + SCRIPTS + EMOJI + DECOMPOSED
    for _ in range(6000):
        separator = generator.choice([" ", " ", " ", "\n", "  ", "    ", "\r\n", ""])
        yield separator.join(generator.choices(pieces, k=12))


def corpus_words():
    """Real text, where the machine has it: names and words of Python's own library."""
    text = (pathlib.Path(sysconfig.get_paths()["stdlib"]) / "argparse.py").read_text(encoding="utf-8")
    return [text[i : i + 2000] for i in range(0, 60000, 2000)]


def any_character(generator):
    kind = generator.random()
    if kind < 0.3:
        return chr(generator.randrange(0x20, 0x7F))
    if kind < 0.4:
        return chr(generator.randrange(0x00, 0x100))
    if kind < 0.7:
        return chr(generator.randrange(0x100, 0x3100))
    while True:
        code = generator.randrange(0x3100, 0x30000 if kind < 0.97 else 0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def make_string(generator, real):
    pick = generator.choice
    kind = generator.randrange(12)
    if kind == 0:
        start = generator.randrange(0, 1900)
        return pick(real)[start : start + generator.randrange(1, 40)]
    if kind == 1:
        return "".join(any_character(generator) for _ in range(generator.randrange(1, 16)))
    if kind == 2:
        return "".join(pick(WHITE_SPACE + "ab1.") for _ in range(generator.randrange(1, 14)))
    if kind == 3:
        return "".join(pick(["\r\n", "\r", "\n", " ", "\t", "a", "7", "."]) for _ in range(generator.randrange(1, 14)))
    if kind == 4:
        return "".join(pick(CONTRACTIONS + ["we", " it", "\u00e9", " "]) for _ in range(generator.randrange(1, 8)))
    if kind == 5:
        marks = "".join(chr(generator.randrange(0x300, 0x370)) for _ in range(generator.randrange(0, 4)))
        return pick(DECOMPOSED) + marks + pick(DECOMPOSED + PLAIN)
    if kind == 6:
        return pick(["", " "]).join(pick(EMOJI) for _ in range(generator.randrange(1, 6)))
    if kind == 7:
        return "".join(chr(generator.randrange(0, 0x20)) for _ in range(generator.randrange(1, 12)))
    if kind == 8:
        return "".join(pick("0123456789.,٣٤৭½²Ⅷ ") for _ in range(generator.randrange(1, 14)))
    if kind == 9:
        return "".join(pick(SPECIAL + PLAIN + WHITE_SPACE.split() + [" ", "  ", "\n"]) for _ in range(generator.randrange(1, 6)))
    if kind == 10:
        return pick(["", " "]).join(pick(SCRIPTS) for _ in range(generator.randrange(1, 6)))
    return pick([" ", ""]).join(pick(PLAIN) for _ in range(generator.randrange(1, 4)))


def make_strings(count, seed):
    generator = random.Random(seed)
    real = corpus_words()
    strings = ["", " ", "\n", "\x00", "a", "'", "\ufeff"] + WHITE_SPACE.split("x") + CONTRACTIONS + EMOJI + SCRIPTS
    strings += DECOMPOSED + SPECIAL + PLAIN
    for unit in ["a", " ", "\n", "\r\n", "\t", "7", "=", "ab", "\U0001f600", "é", "e\u0301", "\u0301", "中", "\x00", "<pad>"]:
        strings += [unit * length for length in (2, 3, 7, 100, 400)]
        strings += ["x" + unit * 50 + "y"]
    while len(strings) < count:
        strings.append(make_string(generator, real))
    return strings[:count]


def train(normalizer, pre_tokenizer, tokens, vocabulary, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    generator = random.Random(1)
    tokenizer.train_from_iterator(list(training_text(generator)) + corpus_words(), trainer)
    if ignore_merges:
        # Whole words that no merges make: only ignore_merges finds them.
        state = json.loads(tokenizer.to_str())
        del state["model"]["merges"][::5]
        tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_tokens([token for token in tokens if not token.special])
    tokenizer.add_special_tokens([token for token in tokens if token.special])
    state = json.loads(tokenizer.to_str())
    state["decoder"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return state


def special(text, **options):
    return AddedToken(text, special=True, normalized=False, **options)


def split(pattern, behavior="isolated"):
    return pre_tokenizers.Split(Regex(pattern), behavior)


def make_tokenizers():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    llama3 = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    qwen2 = llama3.replace(r"\p{N}{1,3}", r"\p{N}")
    o200k = (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return {
        "gpt2": train(None, pre_tokenizers.ByteLevel(add_prefix_space=False), [special("<|endoftext|>")], 900),
        "llama3": train(
            None, pre_tokenizers.Sequence([split(llama3), byte_level]),
            [special("<|endoftext|>"), special("<|im_start|>")], 900, ignore_merges=True,
        ),
        "qwen2": train(
            normalizers.NFC(), pre_tokenizers.Sequence([split(qwen2), byte_level]),
            [special("<|endoftext|>"), AddedToken("Cafe\u0301", normalized=True), AddedToken("  ", normalized=True)], 900,
        ),
        "o200k": train(None, pre_tokenizers.Sequence([split(o200k), byte_level]), [special("<|endoftext|>")], 900),
        "roberta": train(
            None,
            pre_tokenizers.Sequence([
                split(r"[\p{Han}\p{Hiragana}\p{Katakana}]+"), pre_tokenizers.Split("=", "removed"),
                pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True),
            ]),
            [special("<mask>", lstrip=True), special("<pad>", rstrip=True), special("<|endoftext|>", lstrip=True, rstrip=True)],
            900,
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="take the NAME.json of the folder")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)

    strings = make_strings(arguments.count, arguments.seed)
    with open(arguments.folder / "strings.bin", "wb") as file:
        file.write(struct.pack("<I", len(strings)))
        for string in strings:
            data = string.encode()
            file.write(struct.pack("<I", len(data)) + data)

    if not arguments.keep:
        for name, state in make_tokenizers().items():
            text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
            (arguments.folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    for path in sorted(arguments.folder.glob("*.json")):
        tokenizer = Tokenizer.from_file(str(path))
        with open(path.with_suffix(".ids"), "wb") as file:
            file.write(struct.pack("<I", len(strings)))
            for string in strings:
                ids = tokenizer.encode(string, add_special_tokens=False).ids
                file.write(struct.pack(f"<H{len(ids)}H", len(ids), *ids))


if __name__ == "__main__":
    main()
