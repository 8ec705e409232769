#!/bin/sh
# package.sh THRONG: what `./dev package` makes of a program, looked at from outside. No network; nothing is installed on this machine.
set -eu

program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "package: $*" >&2
    exit 1
}

root=$PWD
IMAGE=registry.example/throng deploy/package/build --binary "$program" --out "$work/out" --quick 2>"$work/log" >/dev/null || fail "$(cat "$work/log")"
mkdir "$work/taken"
echo mine >"$work/taken/throng.txt"
if deploy/package/build --binary "$program" --out "$work/taken" --quick >/dev/null 2>&1; then fail "a folder of somebody's was taken"; fi
[ "$(cat "$work/taken/throng.txt")" = mine ] || fail "a file of somebody's is gone"
cd "$work/out"
sha256sum -c --quiet SHA256SUMS || fail "the sums are wrong"
version=$("$program" --version | cut -d ' ' -f 2)
name=$(basename "throng-$version"-*.tar.gz .tar.gz)
for made in "$name.cdx.json" "$name.intoto.json" "throng-chart-$version.tgz"; do
    [ -s "$made" ] || fail "$made was not made"
done

# ------------------------------------------------------------------------------ the list, and the statement

python3 - "$OLDPWD" "$version" "$name" <<'PYTHON' || fail "the list or the statement is wrong"
import hashlib, json, pathlib, re, sys, tomllib
root, version, file = pathlib.Path(sys.argv[1]), *sys.argv[2:]
bom = json.loads(pathlib.Path(f"{file}.cdx.json").read_text())
listed = {(one["name"], one["version"]): one for one in bom["components"]}
lock = {(one["name"], one["version"]): one for one in tomllib.loads((root / "Cargo.lock").read_text())["package"]}
assert bom["bomFormat"] == "CycloneDX" and len(listed) == len(bom["components"]) > 50
for key, one in listed.items():
    # The crates of this workspace come from no registry.
    if key[0].startswith("throng-") and "source" not in lock[key]:
        assert "hashes" not in one, f"{key} has no archive"
    else:
        assert one["hashes"][0]["content"] == lock[key]["checksum"], f"{key}: another hash than the lock's"
    assert one["licenses"], f"{key} has no licence"
names = {name for name, _ in listed}
wanted = tomllib.loads((root / "Cargo.toml").read_text())
direct = {one.get("package", name) if isinstance(one, dict) else name
          for name, one in wanted["dependencies"].items() if not (isinstance(one, dict) and one.get("optional"))}
assert direct <= names, f"not listed: {direct - names}"
only_tests = set(wanted["dev-dependencies"]) - set(wanted["dependencies"])
assert "proptest" in only_tests and "proptest" not in names, "what only tests use is listed"
references = {one["bom-ref"] for one in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
for one in bom["dependencies"]:
    assert one["ref"] in references and references.issuperset(one["dependsOn"]), f"{one['ref']}: a dependency leads nowhere"
statement = json.loads(pathlib.Path(f"{file}.intoto.json").read_text())
subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
files = {path.name for path in pathlib.Path(".").glob("throng*")} - {f"{file}.intoto.json"}
assert set(subjects) == files, f"{subjects.keys() ^ files}"
for name, digest in subjects.items():
    assert hashlib.sha256(pathlib.Path(name).read_bytes()).hexdigest() == digest, name
assert statement["predicate"]["buildDefinition"]["externalParameters"]["source"] == "given"
values = {"name": "throng", "version": version, "target": file.split("-", 2)[2], "bin": "throng", "binary-ext": ""}
binstall = {key: re.sub(r"\{ ([a-z-]+) \}", lambda one: values.get(one[1], one[0]), text)
            for key, text in wanted["package"]["metadata"]["binstall"].items()}
assert binstall["pkg-url"].endswith(f"/v{version}/{file}.tar.gz") and binstall["bin-dir"] == f"{file}/bin/throng", binstall
PYTHON

# ------------------------------------------------------------------------------ the tarball

mkdir "$work/tarball"
tar -xzf "throng-$version"-*.tar.gz -C "$work/tarball" --strip-components 1
[ "$("$work/tarball/bin/throng" --version)" = "throng $version" ] || fail "the program of the tarball does not run"
if tar -tvzf "throng-$version"-*.tar.gz | grep -v ' 0/0 '; then fail "the tarball has files that are not root's"; fi
for page in throng throng-run throng-check; do
    gzip -dc "$work/tarball/share/man/man1/$page.1.gz" | grep -q "^.TH $page 1" || fail "$page.1 is no manual page"
done
for path in share/bash-completion/completions/throng share/zsh/vendor-completions/_throng share/fish/vendor_completions.d/throng.fish \
    share/doc/throng/THIRD-PARTY.txt share/throng/prometheus/alerts.yml share/throng/dashboards/privacy.json docs/operation.md LICENSE; do
    [ -s "$work/tarball/$path" ] || fail "the tarball has no $path"
done
if grep -rlF --exclude-dir bin -e "$work" -e "$OLDPWD" "$work/tarball"; then fail "these name a folder of this machine"; fi

# ------------------------------------------------------------------------------ the Python wheel

"$program" generate wearable --records 3000 --seed 1 -o "$work/in.ndjson"
wheel_tools=$root/.tools/wheel
if [ -f "$wheel_tools/ready" ]; then
    PATH=$wheel_tools/bin:$PATH "$root/python/build-wheel" "$work/out" --quick >/dev/null 2>"$work/log" || fail "$(cat "$work/log")"
    sha256sum -c --quiet SHA256SUMS || fail "the sums are wrong after adding the wheel"
    wheel=$(echo throng_privacy-*.whl)
    grep -qF "  $wheel" SHA256SUMS || fail "the wheel is not in SHA256SUMS"
    case $wheel in
        "throng_privacy-$version-py3-none-manylinux_"*.whl) ;;
        *) fail "the wheel has no manylinux tag: $wheel" ;;
    esac
    # A new environment. The packages that the wheel requires are those of .tools/wheel, because there is no network.
    "$wheel_tools/bin/python" -m venv --without-pip "$work/venv"
    packages=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$wheel_tools/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$packages/required.pth"
    "$wheel_tools/bin/pip" --python "$work/venv/bin/python" install -q --disable-pip-version-check --no-compile --no-index "$wheel" ||
        fail "pip cannot install the wheel with the packages of .tools/wheel"
    mkdir "$work/example"
    (
        unset THRONG_BINARY PYTHONPATH
        cd "$work/example"
        [ "$("$work/venv/bin/throng" --version)" = "throng $version" ] || fail "the program of the wheel does not run"
        "$work/venv/bin/throng" audit "$work/in.ndjson" --k 5 --subject user_id --columns age,sex,zip >"$work/said" 2>&1 ||
            fail "the program of the wheel cannot audit: $(cat "$work/said")"
        "$work/venv/bin/python" -m doctest "$root/python/README.md" >"$work/said" 2>&1 || fail "the example of python/README.md: $(cat "$work/said")"
    )
    binary=$("$work/venv/bin/python" -c 'import throng._process; print(throng._process.binary_path())')
    if ldd "$binary" | grep -E 'lib(ssl|crypto)' | grep -vF "$work/venv/"; then fail "the wheel uses the OpenSSL of this machine"; fi
    [ -s "$(dirname "$binary")/../THIRD-PARTY.txt" ] || fail "the wheel has no THIRD-PARTY.txt"
else
    echo "skipped: the Python wheel (no environment in .tools/wheel; './dev setup package' creates it)"
fi

# ------------------------------------------------------------------------------ the chart

mkdir "$work/chart"
tar -xzf "throng-chart-$version.tgz" -C "$work/chart"
cmp -s "$work/chart/throng/files/alerts.yml" "$OLDPWD/deploy/prometheus/alerts.yml" || fail "the chart has other alert rules"
grep -qx '  repository: registry.example/throng' "$work/chart/throng/values.yaml" || fail "the chart installs another image than IMAGE"
[ -z "$(find "$work/chart" -type l)" ] || fail "the chart has links that lead out of it"

# ------------------------------------------------------------------------------ the files that the image is built from

sed -n 's/^!//p' "$OLDPWD/deploy/Dockerfile.dockerignore" | while read -r path; do
    mkdir -p "$work/image/$(dirname "$path")" && cp -R "$OLDPWD/$path" "$work/image/$path"
done
(cd "$work/image" && cargo metadata --locked --offline --no-deps --format-version 1 >/dev/null 2>"$work/said") ||
    fail "deploy/Dockerfile.dockerignore leaves out sources: $(cat "$work/said")"

# ------------------------------------------------------------------------------ the Debian package

if ! command -v dpkg-deb >/dev/null 2>&1 || ! command -v dpkg-shlibdeps >/dev/null 2>&1; then
    echo "skipped: the Debian package (no dpkg-deb and dpkg-shlibdeps)"
    exit 0
fi
mkdir "$work/installed"
dpkg-deb -x throng_*.deb "$work/installed"
dpkg-deb -e throng_*.deb "$work/control"
(cd "$work/installed" && md5sum -c --quiet "$work/control/md5sums") || fail "md5sums are wrong"
if dpkg-deb -c throng_*.deb | grep -v ' root/root '; then fail "the package has files that are not root's"; fi
[ "$(dpkg-deb -f throng_*.deb Version)" = "$version" ] || fail "the package has another version"
for library in libc6 libssl3; do
    dpkg-deb -f throng_*.deb Depends | grep -q "$library" || fail "the package does not depend on $library"
done
[ -z "$(find "$work/installed/etc" -type f)" ] || fail "the package brings a configuration"

# The service's own commands, in its environment, with what systemd would fill in.
unit=$work/installed/usr/lib/systemd/system/throng.service
mkdir -p "$work/state" "$work/credentials"
head -c 32 /dev/urandom | base64 >"$work/credentials/throng.key"
chmod 0600 "$work/credentials/throng.key"
before=$(sed -n 's/^ExecStartPre=//p' "$unit")
start=$(sed -n 's/^ExecStart=//p' "$unit")
[ "$before" = "/usr/bin/throng check -c /etc/throng/throng.toml" ] || fail "ExecStartPre is not the check of the configuration"
[ "$start" = "/usr/bin/throng run -c /etc/throng/throng.toml" ] || fail "ExecStart is not the daemon"
cat >"$work/throng.toml" <<TOML
[source]
kind = "file"
path = "$work/in.ndjson"
[sink]
kind = "file"
path = "$work/out.ndjson"
[schema]
file = "schemas/wearable.toml"
[telemetry]
listen = "127.0.0.1:0"
TOML
for command in "$before" "$start"; do
    # shellcheck disable=SC2046 # one word a variable
    set -- $(sed -n 's/^Environment=//p' "$unit" | sed -e "s|%S|$work/state|g" -e "s|%d|$work/credentials|g")
    of_program=$(printf '%s' "${command#/usr/bin/throng }" | sed "s|/etc/throng/throng.toml|$work/throng.toml|")
    # shellcheck disable=SC2086 # the arguments of the unit
    (cd "$work/installed/usr/share/throng" && env "$@" "$work/installed/usr/bin/throng" $of_program) >"$work/said" 2>&1 ||
        fail "'$command' failed: $(cat "$work/said")"
done
[ -d "$work/state/throng/state" ] || fail "the state is not where the unit puts it"
find "$work" -maxdepth 1 -name 'out*.ndjson' | grep -q . || fail "the service's command has released nothing"

if command -v systemd-analyze >/dev/null 2>&1; then
    sed "s|=/usr/bin/throng|=$work/installed/usr/bin/throng|" "$unit" >"$work/throng.service"
    systemd-analyze verify --man=no "$work/throng.service" || fail "systemd does not take the unit"
    systemd-analyze security --offline=true --threshold=20 "$work/throng.service" >"$work/said" 2>&1 || fail "the unit is open: $(tail -n 1 "$work/said")"
else
    echo "skipped: systemd's opinion of the unit (no systemd-analyze)"
fi
echo "the packages hold what they should"
