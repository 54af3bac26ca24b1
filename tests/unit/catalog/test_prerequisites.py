"""What a connector stands on: real environments, real wheels, and nothing of a package run while it is installed."""

import json
import shutil
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import needs
import pytest

from headwater.catalog.prerequisites import install, own_python, prerequisite_faults
from headwater.errors import HeadwaterError
from headwater.manifest.package import Package

PYTHON = Package(("python", "c.py"))
NODE = Package(("node", "c.js"))


def wheel(folder: Path) -> str:
    """Write a wheel, and return its line in a requirements file without the hash."""
    wheels = folder / "wheels"
    wheels.mkdir()
    path = wheels / "greeting-1.0-py3-none-any.whl"
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("greeting.py", "WORD = 'hello'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return f"greeting==1.0 --hash=sha256:{sha256(path.read_bytes()).hexdigest()}"


def require(folder: Path, *lines: str) -> None:
    """Write a requirements file that looks for packages in the folder alone."""
    (folder / "requirements.txt").write_text("\n".join(("--no-index", "--find-links ./wheels", *lines)))


def quiet(_what: str) -> None:
    """Tell nobody."""


def test_python_packages_get_an_environment_of_their_own(tmp_path):
    """The package is there and the SDK too; for Headwater itself nothing changes."""
    require(tmp_path, wheel(tmp_path))
    assert install(tmp_path, PYTHON, quiet) == (".venv",)
    python = own_python(tmp_path)
    assert python is not None
    code = "import greeting, headwater.sdk; print(greeting.WORD, greeting.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(f"hello {tmp_path}/.venv/"), done.stderr
    with pytest.raises(ImportError):
        __import__("greeting")


def test_a_hash_that_does_not_agree_is_refused(tmp_path):
    """A package that was exchanged is not installed."""
    wheel(tmp_path)
    require(tmp_path, f"greeting==1.0 --hash=sha256:{'0' * 64}")
    with pytest.raises(HeadwaterError) as raised:
        install(tmp_path, PYTHON, quiet)
    assert raised.value.code == "install_failed"
    assert "HASHES" in "".join(raised.value.data["explanation"]).upper()


def test_a_package_whose_installation_would_run_code_is_refused(tmp_path):
    """A source distribution has a setup.py; only wheels are taken."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "greeting-1.0").mkdir()
    (tmp_path / "greeting-1.0" / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    shutil.make_archive(str(tmp_path / "wheels" / "greeting-1.0"), "gztar", tmp_path, "greeting-1.0")
    require(tmp_path, "greeting==1.0")
    with pytest.raises(HeadwaterError):
        install(tmp_path, PYTHON, quiet)
    assert not (tmp_path / "ran").exists()


def test_a_connector_without_packages_has_no_environment(tmp_path):
    """It runs on the Python that Headwater runs on."""
    assert install(tmp_path, PYTHON, quiet) == ()
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert install(tmp_path, PYTHON, quiet) == ()
    (tmp_path / "requirements.txt").write_text("greeting")
    assert install(tmp_path, Package(("./run.sh",)), quiet) == ()
    assert own_python(tmp_path) is None


TAKEN = [
    "greeting",
    "greeting==1.0  # the word",
    "greeting[loud,_x] >=1.0, <2 ; python_version >= '3.11' --hash=sha256:00 --hash=sha256:11",
    "greeting == 1.0 \\\n    --hash=sha256:00",
    "--index-url https://packages.example/simple",
    "-f ./wheels",
    "# nothing",
]
NOT_TAKEN = [
    ".",
    "./greeting",
    "-e .",
    "--editable=.",
    "greeting @ https://packages.example/greeting-1.0.tar.gz",
    "https://packages.example/greeting.tar.gz",
    "git+https://code.example/greeting",
    "greeting-1.0.tar.gz",
    "greeting.zip",
    "-r more.txt",
    "--no-binary :all:",
    "--no-binary=greeting",
    "--trusted-host packages.example",
    "--extra-index-url https://packages.example/${HOME}",
    "greeting \\\n--no-binary :all:",
    "greeting --config-settings=a=b",
    "greeting==1.0 --hash=sha256:00 --global-option=x",
]


@pytest.mark.parametrize("line", TAKEN)
def test_a_package_by_its_name_is_taken(tmp_path, line):
    """With versions, markers and hashes, and where to look for it."""
    (tmp_path / "requirements.txt").write_text(line)
    assert prerequisite_faults(tmp_path, PYTHON) == []


@pytest.mark.parametrize("line", NOT_TAKEN)
def test_what_pip_would_build_or_obey_is_a_fault(tmp_path, line):
    """Found before a copy is made, with the number of its line."""
    (tmp_path / "requirements.txt").write_text(f"# first\n{line}\n")
    assert [fault.pointer for fault in prerequisite_faults(tmp_path, PYTHON)] == ["requirements.txt/2"]


@pytest.mark.parametrize("text", ["[project", '[project]\ndependencies = "x"', "project = 3\n", "\xff"])
def test_a_pyproject_that_cannot_be_read_is_a_fault(tmp_path, text):
    """Nothing is guessed."""
    (tmp_path / "pyproject.toml").write_text(text, encoding="latin-1")
    assert [fault.rule for fault in prerequisite_faults(tmp_path, PYTHON)] == ["unreadable"]


def test_dependencies_of_a_project_are_held_to_the_same(tmp_path):
    """An option of pip is no dependency, and a folder is none."""
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["greeting>=1", "-r /x", "."]\n')
    assert [fault.pointer for fault in prerequisite_faults(tmp_path, PYTHON)] == ["pyproject.toml"] * 2


def test_no_file_of_the_connector_runs_while_it_is_installed(tmp_path):
    """Not even one that has the name of a module that the installers import."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    for name in ("venv", "ensurepip", "pip", "logging", "argparse", "sitecustomize", "usercustomize", "encodings"):
        (tmp_path / f"{name}.py").write_text(trap)
    require(tmp_path, wheel(tmp_path))
    assert install(tmp_path, PYTHON, quiet) == (".venv",)
    assert not (tmp_path / "ran").exists()


def test_a_node_package_from_git_is_a_fault(tmp_path):
    """To take it, npm would run what prepares it."""
    (tmp_path / "package.json").write_text("{}")
    row = {"resolved": "git+ssh://git@code.example/x.git#00"}
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": {"node_modules/x": row}}))
    assert "git" in [fault.rule for fault in prerequisite_faults(tmp_path, NODE)]


def test_node_packages_need_a_lock(tmp_path):
    """Or the packages themselves, which then are pinned with the rest."""
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"x": "1"}}))
    assert [fault.rule for fault in prerequisite_faults(tmp_path, NODE)] == ["lock"]
    (tmp_path / "node_modules").mkdir()
    assert prerequisite_faults(tmp_path, NODE) == []
    assert install(tmp_path, NODE, quiet) == ()


def test_a_lock_needs_npm(tmp_path, monkeypatch):
    """Named at once, and not after everything was copied."""
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text("{}")
    monkeypatch.setenv("PATH", "/nowhere")
    assert [fault.rule for fault in prerequisite_faults(tmp_path, NODE)] == ["program"]


@needs.node
def test_a_lock_that_does_not_fit_is_refused_with_npm_s_words(tmp_path):
    """What npm said is the explanation."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "package.json").write_text(json.dumps({"name": "d", "version": "1.0.0"}))
    (tmp_path / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"d": "file:d"}}))
    lock = {"name": "x", "lockfileVersion": 3, "packages": {"": {"name": "x"}}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    with pytest.raises(HeadwaterError) as raised:
        install(tmp_path, NODE, quiet)
    assert "npm error" in "".join(raised.value.data["explanation"])


@needs.node
def test_no_script_of_a_node_package_runs(tmp_path):
    """An install script is somebody else's program."""
    (tmp_path / "dependency").mkdir()
    scripts = {"postinstall": f"touch {tmp_path}/ran", "install": f"touch {tmp_path}/ran"}
    (tmp_path / "dependency" / "package.json").write_text(
        json.dumps({"name": "d", "version": "1.0.0", "scripts": scripts})
    )
    own = {"postinstall": f"touch {tmp_path}/ran"}
    document = {"name": "x", "version": "1.0.0", "dependencies": {"d": "file:dependency"}, "scripts": own}
    (tmp_path / "package.json").write_text(json.dumps(document))
    locked = {"": document, "dependency": {"name": "d", "version": "1.0.0", "hasInstallScript": True}}
    locked["node_modules/d"] = {"resolved": "dependency", "link": True}
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": locked}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    assert install(tmp_path, NODE, quiet) == ("node_modules",)
    assert (tmp_path / "node_modules" / "d" / "package.json").is_file()
    assert not (tmp_path / "ran").exists()
