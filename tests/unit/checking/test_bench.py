"""The bench itself: what a connector that was killed still does there breaks no check."""

import subprocess
import sys
from pathlib import Path

from headwater.catalog.folders import folder_at
from headwater.checking.bench import Bench

SINS = Path(__file__).parents[2] / "guests" / "sins"
WRITER = """
import itertools, pathlib, sys
for number in itertools.count():
    try:
        folder = pathlib.Path(sys.argv[1]) / str(number % 50)
        folder.mkdir(exist_ok=True)
        (folder / str(number)).touch()
    except FileNotFoundError:
        break
    if number == 200:
        print("writing", flush=True)
"""


def test_a_spool_that_is_still_written_to_is_left_and_breaks_nothing(tmp_path):
    """A killed program may outlive its confinement for a moment; the check goes on."""
    bench = Bench(folder_at(SINS), {}, tmp_path, None, 0, ())
    with bench.spool() as spool:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(spool)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
    writer.kill()
    writer.communicate()
