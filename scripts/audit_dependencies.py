"""Look up known vulnerabilities of the locked versions: `make audit-dependencies`.

It runs pip-audit, which asks a service on the network. If that does not answer, nothing is known: the script
fails and prints `cannot run here: …`, which scripts/run_local_ci.sh reports as skipped.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def versions(lock: str) -> list[str]:
    """Return name==version for each line of a lock; 2.13.0+cpu is known to the service as 2.13.0."""
    return re.findall(r"^([\w.-]+==[^\s+]+)", lock, flags=re.MULTILINE)


def findings(dependencies: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each vulnerability, and for each package the service does not know."""
    unknown = [each["name"] for each in dependencies if "skip_reason" in each]
    if len(unknown) == len(dependencies):
        return [f"cannot run here: the vulnerability service knows none of {len(dependencies)} packages"]
    lines = [f"{name}: unknown to the vulnerability service" for name in unknown]
    for each in dependencies:
        for found in each.get("vulns", ()):
            fixed = ", ".join(found["fix_versions"]) or "no version yet"
            lines.append(f"{each['name']} {each['version']}: {found['id']}, fixed in {fixed}")
    return lines


def audit(lock: Path) -> list[str]:
    """Return what pip-audit finds in a lock."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "requirements.txt"
        plain.write_text("\n".join(versions(lock.read_text(encoding="utf-8"))), encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--format", "json"]
        command += ["--progress-spinner", "off", "--requirement", str(plain)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return ["cannot run here: the vulnerability service did not answer within 300 s"]
    if not done.stdout.startswith("{"):
        return [f"cannot run here: {(done.stderr.strip().splitlines() or ['pip-audit said nothing'])[-1]}"]
    return findings(json.loads(done.stdout)["dependencies"])


def main() -> None:
    """Print the findings; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description="Look up known vulnerabilities of locked versions.")
    parser.add_argument("lock", type=Path, help="requirements.lock")
    lock: Path = parser.parse_args().lock
    if not lock.is_file():
        parser.error(f"{lock} is no file, expected requirements.lock")
    found = audit(lock)
    for line in found:
        print(f"audit_dependencies: {line}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("audit_dependencies: no known vulnerabilities")


if __name__ == "__main__":
    main()
