"""What sets the four families apart for the scripts here."""
import json
from pathlib import Path

PUBLISHED = Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "configs"

FAMILIES = ("glm_moe_dsa", "glm4_moe_lite", "deepseek_v3", "deepseek_v32")
WITH_INDEXER = ("glm_moe_dsa", "deepseek_v32")
WITH_YARN = ("deepseek_v3", "deepseek_v32")

_PUBLISHED_FILES = {"glm_moe_dsa": "glm-5.2.json", "glm4_moe_lite": "glm-4.7-flash.json",
                    "deepseek_v3": "deepseek-v3.json", "deepseek_v32": "deepseek-v3.2.json"}


def published_config(family):
    """The published config.json without its quantization."""
    config = json.loads((PUBLISHED / _PUBLISHED_FILES[family]).read_text())
    config.pop("quantization_config", None)
    return config


def add_family_option(parser):
    parser.add_argument("--family", choices=FAMILIES, action="append",
                        help="check this family only; may be repeated; default: all")


def chosen_families(options):
    return options.family or list(FAMILIES)


def drawable_ids(config):
    """(lowest, one past the highest) id of the larger side of the end tokens."""
    end = config["eos_token_id"]
    end = end if isinstance(end, list) else [end]
    below, above = min(end), config["vocab_size"] - max(end) - 1
    return (0, below) if below >= above else (max(end) + 1, config["vocab_size"])
