"""Packs a wheel from what is built, in a second, for the test of the package.

ci/wheel makes the one to publish.
"""
import base64
import hashlib
import pathlib
import re
import stat
import subprocess
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TAG = "py3-none-linux_x86_64"


def metadata(version):
    """Returns the files of NAME-VERSION.dist-info, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    entries = {"console_scripts": project["scripts"], **project["entry-points"]}
    entry_lines = [line for group, calls in entries.items()
                   for line in (f"[{group}]", *(f"{name} = {call}" for name, call in calls.items()))]
    return {"METADATA": lines, "entry_points.txt": entry_lines,
            "WHEEL": ["Wheel-Version: 1.0", "Generator: attest", "Root-Is-Purelib: false",
                      f"Tag: {TAG}"]}


def pack(build, folder):
    """Writes a wheel of the targets attest_shared and attest and of python/attest; returns its path.

    The libraries that it needs are this machine's: nothing is bundled.
    """
    version = re.search(r"project\(attest VERSION ([\d.]+)",
                        (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    info = f"attest-{version}.dist-info"
    wheel = pathlib.Path(folder) / f"attest-{version}-{TAG}.whl"
    record = []
    with tempfile.TemporaryDirectory() as stage, zipfile.ZipFile(wheel, "w") as archive:
        subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", stage],
                       check=True, stdout=subprocess.DEVNULL)

        def add(name, content, mode=stat.S_IFREG | 0o644):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")

        for top, pattern in ((ROOT / "python", "attest/**/*.py"), (ROOT / "python", "attest/py.typed"),
                             (pathlib.Path(stage), "**/*")):
            for path in sorted(one for one in top.glob(pattern) if one.is_file()):
                add(str(path.relative_to(top)), path.read_bytes(), path.stat().st_mode)
        for name, lines in metadata(version).items():
            add(f"{info}/{name}", "\n".join([*lines, ""]).encode())
        add(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]).encode())
    return wheel
