"""Find the Java that Spark needs, or say in one message how to get it.

Spark 4 runs on Java 17 and 21 and asks for the module `jdk.incubator.vector`, which stripped-down runtimes lack;
such a runtime is passed over, not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from anon_spark.errors import ConfigurationError

SUPPORTED = (17, 21)
MODULE = "jdk.incubator.vector"
HOW_TO_GET = (
    "Spark needs Java 17 or 21 and none was found. Install it with one of\n"
    "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless)\n"
    "  macOS            brew install openjdk@17\n"
    "  conda            conda install -c conda-forge openjdk=17\n"
    "or set JAVA_HOME to an installed one, then try again."
)


def ensure_java() -> Path:
    """Set JAVA_HOME of this process to a Java that Spark can use; ConfigurationError says how to get one.

    Cost: reads a few small files; starts a process only for a Java that does not describe itself.
    """
    home = find_java()
    if home is None:
        raise ConfigurationError(HOW_TO_GET)
    os.environ["JAVA_HOME"] = str(home)
    return home


def find_java() -> Path | None:
    """The first usable Java: JAVA_HOME, then `java` on the PATH, then the usual places."""
    return next((home for home in candidates() if usable(home)), None)


def candidates() -> Iterator[Path]:
    """Folders where Java may be, best first; many of these do not exist."""
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for prefix in dict.fromkeys((sys.prefix, os.environ.get("CONDA_PREFIX") or sys.prefix)):
        yield Path(prefix) / "lib/jvm"
        yield Path(prefix)
    for version in SUPPORTED:
        yield from sorted(Path("/usr/lib/jvm").glob(f"*{version}*"))
        for brew in ("/opt/homebrew", "/usr/local"):
            yield Path(f"{brew}/opt/openjdk@{version}/libexec/openjdk.jdk/Contents/Home")
            yield Path(f"{brew}/opt/openjdk@{version}")
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
    yield from sorted((Path.home() / ".sdkman/candidates/java").glob("*"))


def usable(home: Path) -> bool:
    """Whether Spark starts with the Java in `home`: right version, needed module there."""
    if not (home / "bin/java").is_file():
        return False
    release = home / "release"
    facts = release.read_text(errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', facts, re.MULTILINE)
    if modules and MODULE not in modules[1].split():
        return False
    stated = re.search(r'^JAVA_VERSION="([^"]+)"', facts, re.MULTILINE)
    return major(stated[1] if stated else asked_version(home)) in SUPPORTED


def major(version: str) -> int:
    """17 of "17.0.15", 8 of "1.8.0_392", 0 of anything else."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0


def asked_version(home: Path) -> str:
    """The version that `java -version` prints, or nothing."""
    try:
        answer = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return match[1] if match else ""


def can_install() -> bool:
    """Whether this process may install packages by apt-get: root, and apt-get is there."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_java() -> Path:
    """Install Java by apt-get and return its home; ConfigurationError if that failed or is not possible here."""
    if can_install():
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=False)
        for version in SUPPORTED:  # some releases carry only one of the two
            package = f"openjdk-{version}-jre-headless"
            command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
            if subprocess.run(command, env=quiet, check=False, stdout=subprocess.DEVNULL).returncode == 0:
                break
    return ensure_java()
