#!/usr/bin/env python3
"""dashboards.py THRONG: a real Prometheus scrapes a running daemon on a real broker; every expression of the dashboards, and every recorded
series, has data there, and no alert fires.

Needs prometheus in PATH and Kafka's jars (`./dev setup test` fetches both); without them it says that it was skipped."""

import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPICS = (("wearable.raw", "4"), ("wearable.sanitized", "4"), ("throng.dead-letters", "1"), ("throng.changelog", "5", "cleanup.policy=compact"), ("throng.changelog.contributions", "1"))
# Filled while a short stream runs; what they are in a long one is Prometheus' to tell.
SHORT = (("[$__rate_interval]", "[20s]"), ("[$__range]", "[1m]"), ("[1h]", "[20s]"), ("[5m]", "[20s]"), ("[15m]", "[20s]"))


def free_ports(count):
    # Below the ports of connections, with room for a controller 10,000 ports above.
    ports = []
    while len(ports) < count:
        port = random.randrange(10_000, 22_000)
        with socket.socket() as one:
            if port not in ports and one.connect_ex(("127.0.0.1", port)) != 0:
                ports.append(port)
    return ports


class Machine:
    """The broker, the daemon and Prometheus, in a folder of their own; all of them end with it."""

    def __init__(self, throng, folder):
        self.throng, self.folder = throng, folder
        kafka, self.pages, self.prometheus = free_ports(3)
        self.brokers = f"127.0.0.1:{kafka}"
        self.environment = os.environ | {
            "KAFKA_PORT": str(kafka),
            "THRONG__SOURCE__BROKERS": self.brokers,
            "THRONG__STATE__PATH": str(folder / "state"),
            "THRONG__STATE__SECRET_FILE": "",
            "THRONG__TELEMETRY__LISTEN": f"127.0.0.1:{self.pages}",
            "THRONG__PRIVACY__MAX_DELAY": "5s",
        }
        self.started = []

    def dev(self, *arguments):
        subprocess.run([ROOT / "dev", *arguments], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def start(self, name, command):
        log = open(self.folder / f"{name}.log", "wb")
        self.started.append(subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log))

    def __enter__(self):
        self.dev("kafka", "up")
        for topic in TOPICS:
            self.dev("kafka", "topic", *topic)
        self.start("throng", [self.throng, "run", "-c", "config/wearable.toml"])
        generate = [self.throng, "generate", "wearable", "--seed", "1", "--topic", "wearable.raw", "--brokers", self.brokers]
        self.start("generate", [*generate, "--records", "2000000", "--rate", "8000"])
        # JSON is YAML.
        rules = [str(ROOT / "deploy/prometheus" / name) for name in ("recordings.yml", "alerts.yml")]
        target = {"job_name": "throng", "static_configs": [{"targets": [f"127.0.0.1:{self.pages}"]}]}
        every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings = self.folder / "prometheus.yml"
        settings.write_text(json.dumps({"global": every, "rule_files": rules, "scrape_configs": [target]}))
        self.start(
            "prometheus",
            [
                "prometheus",
                f"--config.file={settings}",
                f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.prometheus}",
            ],
        )
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        self.dev("kafka", "down")
        port = self.environment["KAFKA_PORT"]
        shutil.rmtree((ROOT / ".tools" / "kafka" / f"run-{port}"), ignore_errors=True)

    def ask(self, expression):
        """The values of the series that an expression gives now."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{self.prometheus}/api/v1/query?{query}", timeout=10) as answer:
            return [(series["metric"], series["value"][1]) for series in json.load(answer)["data"]["result"]]

    def ended(self):
        return [process.args[0] for process in self.started if process.poll() is not None]


def expressions():
    for file in sorted((ROOT / "dashboards").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield f"{file.stem}: {panel['title']}: {target['legendFormat']}", target["expr"]
    for line in (ROOT / "deploy/prometheus/recordings.yml").read_text().splitlines():
        if "- record: " in line:
            name = line.split("- record: ")[1]
            yield name, name


def short(expression):
    for long, brief in SHORT:
        expression = expression.replace(long, brief)
    return expression.replace("$job", ".*").replace("$instance", ".*")


def without_data(machine, wanted):
    empty = []
    for place, expression in wanted:
        try:
            values = machine.ask(short(expression))
        except urllib.error.HTTPError as error:
            # It says "unavailable" until it has started.
            if error.code != 400:
                raise
            sys.exit(f"{place}: {expression}\n{error.read().decode()}")
        if not any(value != "NaN" for _, value in values):
            empty.append((place, expression))
    return empty


def main(throng):
    for needed, there in (("prometheus", shutil.which("prometheus")), ("Kafka", (ROOT / ".tools/kafka/ready").exists())):
        if not there:
            print(f"skipped: the dashboards on a running daemon (no {needed}; ./dev setup test fetches it)")
            return
    with tempfile.TemporaryDirectory() as folder, Machine(throng, pathlib.Path(folder)) as machine:
        wanted = list(expressions())
        # Some are held, and stand still for a while: each has had data once.
        empty = wanted
        until = time.monotonic() + 90
        while empty:
            time.sleep(2)
            try:
                empty = without_data(machine, empty)
            except (urllib.error.URLError, OSError):
                pass
            if machine.ended():
                sys.exit(f"ended before its time: {machine.ended()}\n" + (machine.folder / "throng.log").read_text()[-2000:])
            if empty and time.monotonic() > until:
                sys.exit("no data for:\n" + "\n".join(f"  {place}: {expression}" for place, expression in empty))
        nothing = machine.ask("throng_no_such_metric")
        assert not nothing, "Prometheus answers anything"
        firing = [labels["alertname"] for labels, _ in machine.ask('ALERTS{alertstate="firing"}')]
        if firing:
            sys.exit(f"a healthy daemon raises {firing}")
    print(f"{len(wanted)} expressions have data; no alert fires")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: dashboards.py THRONG")
    main(str(pathlib.Path(sys.argv[1]).resolve()))
