#!/bin/sh
# Measures the figures of draw.py: measure.sh PROGRAM DATA_FOLDER OUT
# PROGRAM: the throng binary. DATA_FOLDER: has fitbit/hourly_steps.csv and lifesnaps/daily.csv. OUT: gets the CSV files.
# Runs one after the other, about two minutes on two cores. Needs Python 3 (standard library only).
set -eu
program=$1 data=$2 out=$3
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work" PYTHONDONTWRITEBYTECODE=1

"$program" demo --show > "$work/show.txt"
"$program" generate wearable --records 20000 --subjects 1000 --seed 1 --interval 1m -o "$work/wearable.ndjson"
"$program" generate wearable --records 20000 --subjects 1000 --seed 2 --interval 1m -o "$work/wearable.prime.ndjson"
"$program" generate wearable --records 40000 --subjects 10000 --seed 1 --interval 6s -o "$work/wearable-10000.ndjson"
"$program" generate wearable --records 20000 --subjects 10000 --seed 2 --interval 6s -o "$work/wearable-10000.prime.ndjson"

PROGRAM=$program DATA=$data OUT=$out WORK=$work "${PYTHON:-python3}" - <<'PYTHON'
import csv, datetime, json, os, re, subprocess, sys, time

program, data, out, work = (os.environ[name] for name in ("PROGRAM", "DATA", "OUT", "WORK"))
begin = time.monotonic()

# The secret is fixed, so that a second measurement gives the same figures. Never do this with real data.
with open(f"{work}/key", "w") as file:
    file.write("dGhyb25nIHBpY3R1cmVzOiBhIHB1YmxpYyB0ZXN0IGs=\n")
os.chmod(f"{work}/key", 0o600)


def intervals(low, high, *widths):
    return f'{{ kind = "intervals", min = {low}, max = {high}, widths = {list(widths)} }}'


def bounds(low, high, *levels):
    return f'{{ kind = "bounds", min = {low}, max = {high}, levels = {[list(level) for level in levels]} }}'


def attribute(name, type, changes=None, hierarchy=None, **more):
    fields = {"name": name, "type": type, **({"changes": changes} if changes else {}), **more}
    text = ", ".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
    return "{ " + text + (f", hierarchy = {hierarchy}" if hierarchy else "") + " }"


FITBIT = [
    attribute("Id", "string", role="subject"),
    attribute("ActivityDay", "date", role="identifier", format="%m/%d/%Y"),
    attribute("ActivityHour", "timestamp", "always", '{ kind = "truncate", levels = ["day", "week", "month"] }',
              role="time", base="ActivityDay", format="%H:%M:%S"),
    attribute("StepTotal", "integer", "always", intervals(0, 20000, 500, 2500, 5000)),
]
LIFESNAPS = [
    attribute("id", "string", role="subject"),
    attribute("date", "date", "always", '{ kind = "truncate", levels = ["week", "month", "quarter"] }', role="time"),
    attribute("age", "string", "never", '{ kind = "tree", tree = ["<30", ">=30"] }'),
    attribute("gender", "string", "never", '{ kind = "tree", tree = ["FEMALE", "MALE"] }'),
    attribute("steps", "integer", "always", bounds(0, 200000, [500, 1000, 2500, 5000, 7500, 10000, 12500, 15000, 20000, 30000],
              [2500, 5000, 10000, 15000], [5000, 10000], [10000]), round=100),
    attribute("calories", "float", "always", intervals(0, 20000, 250, 500, 1000), round=50),
    attribute("bpm", "float", "always", intervals(20, 250, 5, 10, 20), round=1),
    attribute("resting_hr", "float", "always", intervals(20, 200, 5, 10, 20), round=1),
    attribute("minutesAsleep", "integer", "always", intervals(0, 1440, 30, 60, 120, 240), round=15),
    attribute("stress_score", "integer", "always", intervals(0, 100, 5, 10, 30)),
]
WEARABLE = [
    attribute("user_id", "string", role="subject"),
    attribute("email", "string", role="identifier"),
    attribute("device_serial", "string", role="identifier"),
    attribute("age", "integer", "never", intervals(0, 120, 5, 10, 20, 40)),
    attribute("sex", "string", "never"),
    attribute("zip", "string", "never", '{ kind = "prefix", keep = [4, 3, 2, 1], length = 5 }'),
    attribute("blood_group", "string", "never",
              '{ kind = "tree", tree = { "O" = ["O+", "O-"], "A" = ["A+", "A-"], "B" = ["B+", "B-"], "AB" = ["AB+", "AB-"] } }'),
    attribute("height_cm", "integer", "never", intervals(100, 230, 5, 10, 20, 40)),
    attribute("weight_kg", "float", "slowly", intervals(30, 250, 5, 10, 20, 40), round=1.0),
    attribute("device_model", "string", "never"),
    attribute("timestamp", "timestamp", "always", '{ kind = "truncate", levels = ["hour", "day", "month"] }',
              role="time", round="minute"),
    attribute("activity", "string", "always", '{ kind = "tree", tree = { "still" = { "lying" = ["sleep"], "sitting" = ["rest", '
              '"vehicle"] }, "moving" = { "on foot" = ["walk", "run"], "training" = ["cycle", "strength"] } } }'),
    attribute("heart_rate", "integer", "always", intervals(30, 230, 5, 10, 20, 40)),
    attribute("steps", "integer", "always", bounds(0, 300, [1, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200],
              [1, 40, 80, 120, 160, 200], [1, 80, 160], [80]), round=5),
    attribute("calories", "float", "always", intervals(0, 64, 1, 2, 4, 8), round=0.5),
    attribute("distance_m", "integer", "always", bounds(0, 1000, [1, 50, 75, 100, 150, 200, 250, 300, 350, 400],
              [1, 50, 100, 200, 300, 400], [1, 100, 300], [100]), round=10),
    attribute("sleep_stage", "string", "always",
              '{ kind = "tree", tree = { "asleep" = ["light", "deep", "rem"], "not asleep" = ["awake"] } }'),
    attribute("resting_hr", "integer", "slowly", intervals(30, 120, 2, 4, 12, 24)),
    attribute("hrv_ms", "integer", "always", intervals(0, 200, 5, 10, 20, 40)),
    attribute("stress", "integer", "always", intervals(0, 100, 5, 10, 20, 40)),
    attribute("spo2", "integer", "always", bounds(70, 100, [85, 90, 92, 94, 96, 98, 99], [90, 94, 96, 98], [94])),
    attribute("skin_temp", "float", "always", intervals(20, 45, 0.5, 1.0, 2.0, 4.0), round=0.1),
    attribute("battery", "integer", "always", intervals(0, 100, 5, 10, 20, 40)),
    attribute("position", "coordinates", "slowly", '{ kind = "grid", cells = [0.1, 0.5, 2, 10] }', round=0.01),
]
# Data set: attributes, attribute groups, records a batch, batch sizes to try.
SETS = {
    "fitbit": (FITBIT, {"hours": ["ActivityHour", "StepTotal"]}, 300, [50, 100, 200, 300, 500, 1000, 2500]),
    "lifesnaps": (LIFESNAPS, {
        "day": ["date"], "person": ["age", "gender"], "movement": ["steps", "calories"], "pulse": ["bpm"],
        "resting": ["resting_hr"], "sleep": ["minutesAsleep"], "stress": ["stress_score"],
    }, 300, [50, 100, 200, 300, 500, 1000, 2500]),
    "wearable": (WEARABLE, {
        "motion": ["activity", "sleep_stage", "steps", "distance_m", "calories", "heart_rate"],
        "body": ["age", "sex", "height_cm", "weight_kg"], "device": ["device_model"], "home": ["zip"], "place": ["position"],
        "sensors": ["spo2", "skin_temp"], "recovery": ["hrv_ms", "stress"], "resting": ["resting_hr"],
        "blood": ["blood_group"], "clock": ["timestamp"], "power": ["battery"],
    }, 1000, [100, 250, 500, 1000, 2500, 5000, 10000]),
}
# The same people in another order, and more of them.
SETS["lifesnaps-by-person"] = (*SETS["lifesnaps"][:2], 1000, [])
SETS["wearable-10000"] = (*SETS["wearable"][:2], None, SETS["wearable"][3])


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# A stream arrives in the order of time; the public files hold one person after the other.
hours = read(f"{data}/fitbit/hourly_steps.csv")
hours.sort(key=lambda row: datetime.datetime.strptime(f'{row["ActivityDay"]} {row["ActivityHour"]}', "%m/%d/%Y %H:%M:%S"))
write(f"{work}/fitbit.csv", hours)
days = read(f"{data}/lifesnaps/daily.csv")
days.sort(key=lambda row: row["date"])
write(f"{work}/lifesnaps.csv", days)
days.sort(key=lambda row: int(row["id"]))
write(f"{work}/lifesnaps-by-person.csv", days)
FILES = {name: f"{name}.ndjson" if name.startswith("wearable") else f"{name}.csv" for name in SETS}
# Records of which the first plan is made, so that batches are compared and not what the start knows: other generated
# records, and of the public files the file itself.
PRIME = {**FILES, "wearable": "wearable.prime.ndjson", "wearable-10000": "wearable-10000.prime.ndjson"}


def release(name, k, lines, batch, attack, prime=False):
    attributes, groups, _, _ = SETS[name]
    with open(f"{work}/schema.toml", "w") as file:
        file.write(f'name = "{name}"\nattribute = [\n  ' + ",\n  ".join(attributes) + "\n]\n")
    with open(f"{work}/run.toml", "w") as file:
        file.write(
            f'[source]\nkind = "file"\npath = "{FILES[name]}"\n[sink]\nkind = "file"\npath = "out.ndjson"\n'
            f"[batch]\nmax_records = {batch}\n"
            f'[schema]\nfile = "schema.toml"\nunknown = "drop"\n[privacy]\nk = {k}\nmax_lines_per_subject = {lines}\n'
            f'[state]\nsecret_file = "key"\n[release]\nmin_represented = 0\n'
            + (f'[plan]\nprime = "{PRIME[name]}"\n' if prime else "")
            + "".join(f'[[group]]\nname = "{group}"\nattributes = {json.dumps(names)}\n' for group, names in groups.items()))
    for file in os.listdir(work):
        if file.startswith(("out.", "lineage")):
            os.remove(f"{work}/{file}")
    run = subprocess.run([program, "run", "-c", "run.toml", "--lineage", "lineage.ndjson", "--fail-above", "1"],
                         cwd=work, capture_output=True, text=True)
    text = run.stdout + run.stderr
    account = re.search(r"consumed (\d+) = released (\d+)", text)
    if not account:
        sys.exit(f"{name}, k = {k}: {text}")
    loss = re.search(r"mean loss ([\d.]+)", text)
    row = {"data": name, "k": k, "max_lines_per_subject": lines, "max_records": batch,
           "records": int(account[1]), "represented": round(int(account[2]) / int(account[1]), 4),
           "loss": loss[1] if loss else ""}
    attacks = []
    if attack and int(account[2]):
        done = subprocess.run([program, "attack", "out.ndjson", "--original", FILES[name], "--lineage", "lineage.ndjson",
                               "-c", "run.toml", "--targets", "1000", "--json"], cwd=work, capture_output=True, text=True)
        attacks = json.loads(done.stdout)
    return row, attacks


def flat(trial):
    low, high = trial["interval"] or (None, None)
    return {"attack": trial["attack"], "given": trial["given"], "trials": trial["trials"], "right": trial["rate"],
            "low": low, "high": high, "chance": trial["chance"], "promised": trial["bound"], "judged": trial["judged"]}


# before-after: the demo's own output
shown, record = [], None
for line in open(f"{work}/show.txt"):
    if found := re.match(r"record (\d+)", line):
        record = found[1]
    elif record and (found := re.match(r"  (\S+)\s+(\S+(?: \S+)*)\s{2,}(\S.*)$", line.rstrip())):
        shown.append({"record": record, "attribute": found[1], "before": found[2], "after": found[3]})
    elif not line.strip():
        record = None
write(f"{out}/demo.csv", shown)

# privacy-utility, and attacks for the wearable data with the defaults
points = []
for name, (_, _, batch, _) in SETS.items():
    if batch is None:
        continue
    for k in (5, 10, 20):
        for lines in (1, 5, 0):
            row, attacks = release(name, k, lines, batch, True)
            linkage = [trial for trial in attacks if trial["attack"] == "linkage" and trial["trials"]]
            best = flat(linkage[-1]) if linkage else {"given": "", "right": "", "low": "", "high": "", "chance": ""}
            above = linkage[-1]["share_above"] if linkage else ""
            points.append({**row, **{key: best[key] for key in ("given", "right", "low", "high", "chance")}, "share_above": above})
            if (name, k, lines) == ("wearable", 5, 1):
                write(f"{out}/attacks.csv", [flat(trial) for trial in attacks if trial["trials"]])
            print(f"{time.monotonic() - begin:5.0f} s", points[-1], file=sys.stderr)
write(f"{out}/privacy-utility.csv", points)

# batch-size
sizes = []
for name, (_, _, _, batches) in SETS.items():
    for batch in batches:
        sizes.append(release(name, 5, 1, batch, False, prime=True)[0])
        print(f"{time.monotonic() - begin:5.0f} s", sizes[-1], file=sys.stderr)
write(f"{out}/batch-size.csv", sizes)
PYTHON

# dashboard: the status page of a demo, if Chromium is here
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$browser" ]; then
  "$program" demo --seconds 40 --listen 127.0.0.1:9471 > "$work/demo.txt" 2>&1 &
  demo=$!
  sleep 36
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" --window-size=860,3000 \
    --force-device-scale-factor=1.5 --virtual-time-budget=2000 --screenshot="$out/status-page.png" http://127.0.0.1:9471/ \
    > /dev/null 2>&1 || echo "no picture of the status page" >&2
  wait "$demo" || true
fi
