#!/usr/bin/env bash
# What every treatment preset and every way of grouping is worth, and what attackers get from it: the tables of
# docs/performance.md, "Presets and groups, measured", as Markdown on the standard output, from scratch.
#
#   benches/evaluate.sh THRONG DATA_FOLDER WORK_FOLDER [PART…]
#
# THRONG is the binary, DATA_FOLDER has adult/adult.csv and lifesnaps/daily.csv, WORK_FOLDER takes what the runs write (some
# GB; the folders of earlier runs in it are replaced). PARTs: adult, lifesnaps, health, wearable, learning, disease; all without any.
# Needs jq. How it goes, and what is odd, is told on the standard error.
set -euo pipefail
export LC_ALL=C

if [ $# -lt 3 ]; then
    echo "usage: $0 THRONG DATA_FOLDER WORK_FOLDER [adult|lifesnaps|health|wearable|learning|disease]…" >&2
    exit 2
fi
throng=$(realpath -- "$1")
data=$(realpath -- "$2")
mkdir -p -- "$3"
work=$(realpath -- "$3")
parts=" ${*:4} "
asked() { [ "$parts" = "  " ] || [[ "$parts" == *" $1 "* ]]; }
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." # the configurations name their schemas from here

# A configuration as it is shipped, and the same without its groups.
given() { cp -- "config/$1.toml" "$work/$1.given.toml"; }
groupless() { awk '/^\[\[group\]\]/ { exit } { print }' "config/$1.toml" >"$work/$1.toml"; }

# shellcheck disable=SC2016 # jq's variables
rounding='def digits($n): . * pow(10; $n) | round / pow(10; $n);
    def share: . * 100 | if . == 0 then "0" elif . < 0.1 then "< 0.1" else (digits(1) | tostring) end | . + " %";'

# shellcheck disable=SC2016
worth='
    .quality |
    [ $data, $preset, "\($groups), \(.groups | length)", (.loss | digits(4)), (.loss_of_all | digits(3)), (.pairwise_information | digits(3)),
      (.exact | share), (.nothing_released | share), ([.attributes[].falsified // 0] | add), (.data_score | digits(3)),
      (.distortion | digits(3)) ] | "| " + (map(tostring) | join(" | ")) + " |"'

# Of an attack the line with the highest yield; what guessing gives stands beside it where that is what counts.
# shellcheck disable=SC2016
attacks='
    def line($chance): if . == null then "–" elif $chance then "\(.rate | share) (\(.chance | share))" else .rate | share end;
    def worst(f): map(select(.trials > 0 and f)) | max_by(.rate);
    def named($name): .attack == $name;
    [ $data, $preset, $groups,
      (worst(named("linkage")) | line(false)),
      (worst(.attack | startswith("joining by") and . != "joining by covariance") | line(false)),
      (worst(named("joining by covariance")) | line(true)),
      (worst(named("presence")) | line(true)),
      (worst(named("sequences") and .judged != "open") | line(false)),
      (worst(named("exclusion")) | line(false)),
      (worst(named("downcoding")) | line(false)),
      (worst(named("composition")) | line(true)),
      (worst(named("homogeneity")) | line(true)),
      $exit ] | "| " + (map(tostring) | join(" | ")) + " |"'

# shellcheck disable=SC2016
learning='
    def or_none(f): if . == null then "–" else f end;
    .learning[] |
    [ $data, .target, $preset, $wish, (.features | length), (.after.rows // 0), (.majority | share), (.whole.accuracy | or_none(share)),
      (.before.accuracy | or_none(share)), (.after.accuracy | or_none(share)),
      (if .after and .before then .after.accuracy / .before.accuracy | digits(3) else "–" end),
      (.before.auc | or_none(digits(3))), (.after.auc | or_none(digits(3))) ] | "| " + (map(tostring) | join(" | ")) + " |"'

# release NAME CONFIG ORIGINAL PRESET GROUPS: releases into $work/NAME; false where that is refused. The environment stays for what reads it.
release() {
    place="$work/$1"
    rm -rf -- "$place"
    mkdir -p -- "$place"
    export THRONG__SOURCE__KIND=file THRONG__SOURCE__PATH="$3" THRONG__SINK__KIND=file
    export THRONG__SINK__PATH="$place/out.ndjson" THRONG__STATE__PATH="$place/state"
    export THRONG__TREATMENT__PRESET="$4" THRONG__PLAN__GROUPS="$5"
    local begun=$SECONDS code=0
    "$throng" check -c "$2" >"$place/check" 2>"$place/check.errors" || code=$?
    if [ "$code" -ne 0 ]; then
        echo "$1: refused ($code): $(tr '\n' ' ' <"$place/check.errors")" >&2
        return 1
    fi
    "$throng" run -c "$2" --lineage "$place/lineage.ndjson" >"$place/run" 2>"$place/run.errors" || code=$?
    echo "$1: run ended with $code after $((SECONDS - begun)) s: $(grep '^consumed' "$place/run" "$place/run.errors" -h || true)" >&2
    [ "$code" -eq 0 ]
}

# measure NAME CONFIG ORIGINAL DATA PRESET GROUPS: one row of both tables.
measure() {
    local name=$1 config=$2 original=$3 data_name=$4 preset=$5 groups=$6 broken=0 above=0 begun
    if ! release "$name" "$config" "$original" "$preset" "$groups"; then
        echo "| $data_name | $preset | $groups | refused | | | | | | | |" >>"$work/worth.md"
        return 0
    fi
    begun=$SECONDS
    local about=(-c "$config" --lineage "$place/lineage.ndjson")
    "$throng" evaluate "$original" "$place/out.ndjson" "${about[@]}" --json >"$place/worth.json" 2>"$place/worth.errors"
    "$throng" attack "$place/out.ndjson" --original "$original" "${about[@]}" --json --fail-above promise \
        >"$place/attacks.json" 2>"$place/attacks.errors" || above=$?
    "$throng" verify-release "$place/out.ndjson" "${about[@]}" >"$place/recount" 2>"$place/recount.errors" || broken=$?
    echo "$name: measured in $((SECONDS - begun)) s, attack ended with $above, verify-release with $broken" >&2
    { grep '^found' "$place/attacks.errors" || true; } >&2
    if [ "$broken" -ne 0 ]; then cat -- "$place/recount" "$place/recount.errors" >&2; fi
    jq -r --arg data "$data_name" --arg preset "$preset" --arg groups "$groups" "$rounding $worth" \
        "$place/worth.json" >>"$work/worth.md"
    jq -r --arg data "$data_name" --arg preset "$preset" --arg groups "$groups" --arg exit "$above, $broken" "$rounding $attacks" \
        "$place/attacks.json" >>"$work/attacks.md"
}

# every NAME DATA ORIGINAL GIVEN: the five presets with groups by price, then the other ways of grouping.
every() {
    local name=$1 config=$work/$1.toml preset groups
    for preset in k-anonymous coverage a b c; do
        measure "$name.$preset.price" "$config" "$3" "$2" "$preset" price
    done
    if [ "$4" = given ]; then measure "$name.k-anonymous.given" "$work/$name.given.toml" "$3" "$2" k-anonymous given; fi
    for groups in cliques border; do
        measure "$name.k-anonymous.$groups" "$config" "$3" "$2" k-anonymous "$groups"
    done
}

# learn NAME DATA ORIGINAL CONFIG TARGET PREDICTORS: four rows of what can be learned of a column, without and with a wish for it.
learn() {
    local name=$1 original=$3 preset wish config
    { cat -- "$4" && printf '\n[[keep]]\nattributes = [%s]\nweight = 3\n' "$6"; } >"$work/$name.wish.toml"
    for wish in no yes; do
        config=$4
        if [ "$wish" = yes ]; then config=$work/$name.wish.toml; fi
        for preset in k-anonymous coverage; do
            release "$name.learn.$preset.$wish" "$config" "$original" "$preset" price || continue
            "$throng" evaluate "$original" "$place/out.ndjson" -c "$config" --lineage "$place/lineage.ndjson" --target "$5" --json \
                >"$place/worth.json" 2>"$place/worth.errors"
            jq -r --arg data "$2" --arg target "$5" --arg preset "$preset" --arg wish "$wish" "$rounding $learning" \
                "$place/worth.json" >>"$work/learning.md"
        done
    done
}
: >"$work/worth.md"
: >"$work/attacks.md"
: >"$work/learning.md"

for name in adult lifesnaps wearable; do
    given "$name"
    groupless "$name"
done
"$throng" generate wearable --records 30000 --seed 1 -o "$work/wearable.ndjson"
"$throng" generate health --records 10000 --seed 1 -o "$work/health.ndjson"
cat >"$work/health.toml" <<'TOML'
[source]
kind = "file"
[sink]
kind = "file"
[schema]
file = "schemas/health.toml"
[privacy]
k = 5
TOML

# LifeSnaps day after day, as it came: many people in a batch, so that the limits on repetition can stay as they are by default.
{ head -n 1 -- "$data/lifesnaps/daily.csv" && tail -n +2 -- "$data/lifesnaps/daily.csv" | sort -s -t , -k 2,2; } >"$work/days.csv"

# What little is left with the limits on repetition is measured, too.
export THRONG__RELEASE__MIN_REPRESENTED=0
export THRONG__BATCH__MAX_RECORDS=1000 THRONG__TELEMETRY__LISTEN=127.0.0.1:0
if asked adult; then
    every adult ADULT "$data/adult/adult.csv" none
    measure adult.k-anonymous.given "$work/adult.toml" "$data/adult/adult.csv" ADULT k-anonymous given
fi
if asked lifesnaps; then
    every lifesnaps LifeSnaps "$data/lifesnaps/daily.csv" given
    measure lifesnaps.days.price.0 "$work/lifesnaps.toml" "$work/days.csv" "by day" k-anonymous price
    measure lifesnaps.days.given.0 "$work/lifesnaps.given.toml" "$work/days.csv" "by day" k-anonymous given
    export THRONG__PRIVACY__MAX_LINES_PER_SUBJECT=1
    measure lifesnaps.limited "$work/lifesnaps.toml" "$data/lifesnaps/daily.csv" "LifeSnaps, 1 line" k-anonymous price
    measure lifesnaps.days.price "$work/lifesnaps.toml" "$work/days.csv" "by day, 1 line" k-anonymous price
    measure lifesnaps.days.given "$work/lifesnaps.given.toml" "$work/days.csv" "by day, 1 line" k-anonymous given
    unset THRONG__PRIVACY__MAX_LINES_PER_SUBJECT
fi
if asked health; then every health health "$work/health.ndjson" none; fi
if asked wearable; then THRONG__BATCH__MAX_RECORDS=10000 every wearable wearable "$work/wearable.ndjson" given; fi

# Whether one of a person's twenty diseases is the most frequent of those that depend on nothing.
# The diseases themselves are taken out, so that it has to be learned from the drugs, half of which are given for the disease beside them.
jq -c '[to_entries[] | select(.key | startswith("disease_"))] as $ill | with_entries(select(.key | startswith("disease_") | not))
    | .ill = (if any($ill[]; .value == "DOID:100") then "yes" else "no" end)' "$work/health.ndjson" >"$work/ill.ndjson"
{ awk 'BEGIN { RS = ""; ORS = "\n\n" } !/name = "disease_/' schemas/health.toml && printf '[[attribute]]\nname = "ill"\ntype = "string"\n'; } >"$work/ill.schema.toml"
awk -v schema="$work/ill.schema.toml" '/^file = / { print "file = \"" schema "\""; next } { print }' "$work/health.toml" >"$work/ill.toml"
if asked learning; then
    learn adult ADULT "$data/adult/adult.csv" "$work/adult.toml" salary-class '"salary-class", "marital-status", "education", "age", "sex"'
    learn lifesnaps LifeSnaps "$data/lifesnaps/daily.csv" "$work/lifesnaps.toml" steps '"steps", "distance", "calories", "moderately_active_minutes"'
    learn ill health "$work/ill.ndjson" "$work/ill.toml" ill '"ill", "drug_0", "drug_1", "drug_2", "drug_3"'
fi

# The medical use case of [POD] 6.4: coronary artery disease by eight attributes, one treatment a column.
disease() {
    local original=$work/cohort.ndjson features=(age centimeters kilograms blood_type drug_0 drug_1 drug_2 snp_0) treatment
    "$throng" generate health --records 50000 --seed 1 -o "$original"
    awk 'BEGIN { RS = ""; ORS = "\n\n" } /^name = "health"|\nname = "health"/ || /\nname = "(age|centimeters|kilograms|blood_type|drug_[012]|snp_0|disease_[0-3])"/' \
        schemas/health.toml >"$work/cohort.schema.toml"
    for treatment in composition a compartmentation perturbation suppression generalization groups wish; do
        { awk -v schema="$work/cohort.schema.toml" '/^file = / { print "file = \"" schema "\""; next } { print }' "$work/health.toml" &&
            case $treatment in
            compartmentation) printf '[[treatment.rule]]\ntreat = "compartment"\n' ;;
            perturbation) printf '[[treatment.rule]]\nattributes = ["age", "centimeters", "kilograms"]\ntreat = "perturb"\n' ;;
            suppression) printf '[[treatment.rule]]\ntreat = "suppress_cell"\n' ;;
            wish) printf '[[keep]]\nattributes = ["disease_0", "age", "drug_0"]\nweight = 3\n' ;;
            esac; } >"$work/cohort.$treatment.toml"
        local preset=k-anonymous groups=given
        case $treatment in composition) preset=coverage ;; a) preset=a ;; esac
        case $treatment in composition | a | compartmentation | groups | wish) groups=price ;; esac
        THRONG__BATCH__MAX_RECORDS=10000 release "cohort.$treatment" "$work/cohort.$treatment.toml" "$original" "$preset" "$groups" || continue
        "$throng" evaluate "$original" "$place/out.ndjson" -c "$work/cohort.$treatment.toml" --lineage "$place/lineage.ndjson" --queries 1 \
            --target "any(disease_*) = DOID:3393" "${features[@]/#/--feature=}" --json >"$work/cohort.$treatment.json" 2>"$place/worth.errors"
    done
    # shellcheck disable=SC2016
    local rows='def digits($n): . * pow(10; $n) | round / pow(10; $n);
        map(.learning[0]) as $all |
        def row($name; f; before): "| \($name) | " + ([($all[0] | before), ($all[] | f)] | map(if . == null then "–" else digits($digits) | tostring end) | join(" | ")) + " |";
        row("false positives"; .after.errors.false_positives; .whole.errors.false_positives),
        row("false negatives"; .after.errors.false_negatives; .whole.errors.false_negatives),
        row("AUC"; .after.auc; .whole.auc)'
    local weights='map(.learning[0].coefficients) as $all | $all[0] | to_entries[] | . as $at |
        "| \(.value.attribute) | " + ([.value.whole, ($all[] | .[$at.key].after)] | map(if . == null then "–" else . * 10 | round / 10 | tostring end) | join(" | ")) + " |"'
    local files=("$work"/cohort.{composition,a,compartmentation,perturbation,suppression,generalization,groups,wish}.json)
    local head='| | before | composition | composition A | compartments | perturbation | suppression | generalization | groups by price | with a wish |'
    printf '%s\n|---|---|---|---|---|---|---|---|---|---|\n' "$head"
    jq -rs --argjson digits 3 "$rows" "${files[@]}"
    printf '\n%s\n|---|---|---|---|---|---|---|---|---|---|\n' "$head"
    jq -rs "$weights" "${files[@]}"
    echo
}
if asked disease; then disease; fi

cat <<'HEAD'
| data | preset | groups | loss | loss of all | pairwise information | cells exact | nothing | falsified | data score | distortion |
|---|---|---|---|---|---|---|---|---|---|---|
HEAD
cat -- "$work/worth.md"
cat <<'HEAD'

| data | preset | groups | linkage ≤ 20 % | joining ≤ 20 % | covariance | presence | sequences ≤ 20 % | exclusion ≤ 20 % | downcoding | composition | homogeneity | exit codes |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
HEAD
cat -- "$work/attacks.md"
cat <<'HEAD'

| data | target | preset | wish | attributes beside it | lines | always the same | before, all | before | after | after / before | AUC before | AUC after |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
HEAD
cat -- "$work/learning.md"
