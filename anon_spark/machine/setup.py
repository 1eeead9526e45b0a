"""Set-up that `make` runs once after installation: finds or installs Java, fetches Delta's jars, and compiles the kernels.

    python -m anon_spark.machine.setup

Running it again costs nothing; afterwards nothing needs the network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anon_spark.errors as errors
from anon_spark.machine import delta
from anon_spark.machine.java import can_install, find_java, install_java

TIMEOUT_SECONDS = 900


def main() -> int:
    """Set up and say in one line per step what is done; the exit code is that of the command line."""
    try:
        home = find_java()
        if home is None and can_install():
            say("Installing Java 17 with apt-get, once")
        os.environ["JAVA_HOME"] = str(home or install_java())
        if not delta.jar_files():
            say(f"Fetching Delta Lake for Spark {delta.spark_line()}, once (about a minute)")
            fetch_jars()
        compile_kernels()
    except errors.AnonSparkError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def fetch_jars() -> None:
    """Let Spark's own resolver fetch Delta, and keep the jars; the resolver's cache is removed.

    Guarantee: the folder of jars appears whole or not at all.
    """
    folder = delta.jar_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        cache, nothing = Path(scratch) / "ivy", Path(scratch) / "nothing.py"
        nothing.write_text("")  # the packages are resolved before the script runs
        command = [spark_submit(), "--master", "local[1]", "--packages", delta.coordinate()]
        command += ["--conf", f"spark.jars.ivy={cache}", str(nothing)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment.pop("SPARK_HOME", None)  # another Spark than the installed one would ask for other jars
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
            )
            failed = "\n".join((done.stdout + done.stderr).splitlines()[-15:]) if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"no answer within {TIMEOUT_SECONDS} seconds"
        fetched = sorted((cache / "jars").glob("io.delta_*.jar"))
        if failed or delta.main_jar() not in {jar.name for jar in fetched}:
            raise errors.ConfigurationError(
                f"{failed}\nDelta Lake ({delta.coordinate()}) could not be fetched. This step needs the network once; "
                "behind a mirror, name it in the environment variable DEFAULT_ARTIFACT_REPOSITORY. Then try again."
            )
        kept = Path(scratch) / "jars"
        kept.mkdir()
        for jar in fetched:
            shutil.copy(jar, kept)
        shutil.rmtree(folder, ignore_errors=True)  # jars of other versions
        kept.rename(folder)


def compile_kernels() -> None:
    """Compile all kernels that are not compiled yet; a failure is said and does no harm."""
    from anon_spark.machine.kernels import warm  # here only: numba takes a second to import

    warm(say)


def spark_submit() -> str:
    """The spark-submit of the installed pyspark."""
    import pyspark  # here only: it takes longer than everything else when there is nothing to do

    return str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


def say(line: str) -> None:
    """One line of progress, at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
