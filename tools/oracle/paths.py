"""Importing this lets the scripts in tools/ import the modules of tools/oracle by their names."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
