"""The model's own tokenizer: GLM's byte-level BPE with a small vocabulary.

    python train/tokenizer.py OUT_DIR

Trained on drawn dialogs. As in GLM, the post-processor adds nothing and the markers stand at the
end of the vocabulary; unlike GLM, each digit is a token.
"""
import json
import math
import sys
from collections import Counter
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from config import ADDED_TOKENS, BPE_SIZE, NUM_SPECIAL, SEED
from dialog import Renderer
from tasks import Draw, all_tasks, draw_item

# GLM's pattern, with \p{N} alone where GLM groups up to three digits.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DIALOGS_PER_TASK = 3000
FLATTENING = 0.4        # power of a word's count


def texts():
    renderer = Renderer()
    for name, task in all_tasks().items():
        draw = Draw(f"{SEED} tokenizer {name}", held_out=False)
        for _ in range(DIALOGS_PER_TASK):
            text = renderer.dialog(draw_item(task, draw))
            for marker in ADDED_TOKENS:
                text = text.replace(marker, "\n")
            yield text


def words():
    """The words of the texts, the frequent ones less often than they occur, so that rare words
    get their share of the vocabulary."""
    split = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    counts = Counter()
    for text in texts():
        counts.update(word for word, _ in split.pre_tokenize_str(text))
    for word, count in sorted(counts.items()):
        yield from [word] * math.ceil(count ** FLATTENING)


def train_bpe():
    tokenizer = Tokenizer(models.BPE(byte_fallback=False, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=BPE_SIZE, show_progress=False, min_frequency=2,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(words(), trainer)
    if tokenizer.get_vocab_size() != BPE_SIZE:
        raise RuntimeError(f"only {tokenizer.get_vocab_size()} entries; lower VOCAB_SIZE")
    tokenizer.add_tokens([AddedToken(token, special=i < NUM_SPECIAL, normalized=False)
                          for i, token in enumerate(ADDED_TOKENS)])
    return tokenizer


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    train_bpe().save(str(directory / "tokenizer.json"))
    settings = dict(
        tokenizer_class="PreTrainedTokenizerFast",
        model_max_length=32768,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=ADDED_TOKENS[:NUM_SPECIAL],
    )
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    template = Path(__file__).with_name("chat_template.jinja").read_text(encoding="utf-8")
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
