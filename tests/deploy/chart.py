#!/usr/bin/env python3
"""chart.py THRONG: the Helm chart renders what it should, refuses what it should, and gives the program nothing that it does not know.

Needs helm in PATH; without it only references of images and the links of the chart are checked. With kubeconform in PATH, also validates
the rendered documents against the schemas of Kubernetes and of the operators, which it downloads (KUBE_SCHEMAS: locations, or "skip")."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/throng"
LEAST, ALL, OPENSHIFT = (CHART / f"ci/{name}-values.yaml" for name in ("least", "all", "openshift"))
# A helm that go has built believes in an old Kubernetes.
CLUSTER = ["--kube-version", "1.31.0", "--namespace", "data"]

# Single-spaced text of the pod. The first four are required by Pod Security "restricted" and by restricted-v2 of OpenShift.
CONFINED = [
    "runAsNonRoot: true",
    "allowPrivilegeEscalation: false",
    "capabilities: drop: - ALL",
    "seccompProfile: type: RuntimeDefault",
    "readOnlyRootFilesystem: true",
    "automountServiceAccountToken: false",
    "httpGet: { path: /readyz, port: pages, scheme: HTTP",
    "httpGet: { path: /healthz, port: pages, scheme: HTTP",
]
OPEN = r"\b(hostPath|nfs|hostNetwork|hostPID|hostIPC|hostPort|privileged|add|seLinuxOptions|supplementalGroups|sysctls):"
FIXED_IDS = r"\b(runAsUser|runAsGroup|fsGroup):"
SCHEMAS = os.environ.get(
    "KUBE_SCHEMAS",
    "default https://raw.githubusercontent.com/datreeio/CRDs-catalog/main/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json",
).split()
OF_LEAST = "ConfigMap NetworkPolicy PodDisruptionBudget Service ServiceAccount StatefulSet".split()
OF_ALL = [*OF_LEAST, "KafkaUser", "PrometheusRule", "ServiceMonitor", *["ConfigMap"] * 3, *["KafkaTopic"] * 10]

# Rights of the KafkaUser on topics; those of joins and of erasures come from the configuration.
RIGHTS = {
    "steps.raw": "Read, Describe",
    "Steps_Late": "Read, Describe",
    "steps.profiles": "Read, Describe",
    "steps.erasures": "Read, Describe",
    "steps.motion": "Write, Describe",
    "steps.other": "Write, Describe",
    "steps.dead-letters": "Write, Describe",
    "steps.audit": "Write, Describe",
    "steps.changelog": "Read, Write, Describe, DescribeConfigs",
    "steps.changelog.contributions": "Read, Write, Describe",
}

# What is set, and a word of the refusal.
REFUSED = [
    ("replica=2", "replica"),
    ("replicas=-1", "replicas"),
    ("pages.port=70000", "pages.port"),
    ("config=", "config is empty"),
    ("secret.name=", "secret.name is empty"),
    ("pages.token.name=", "pages.open=true"),
    ("image.digest=sha256:1", "image.digest"),
    ("image.repository=throng", "image.repository"),
    ("securityContext=null", "securityContext"),
    ("networkPolicy.dnsPorts=null", "dnsPorts"),
    ("kafka.brokers=1", "kafka.brokers"),
    (r"files.throng\.toml=x", "that is config"),
    ("persistence.accessModes={ReadWriteMany}", "accessModes"),
    ("networkPolicy.brokerPorts=null", "brokerPorts"),
    ("terminationGracePeriodSeconds=1", "terminationGracePeriodSeconds"),
    ("strimzi.user.enabled=true", "strimzi.cluster"),
    ("strimzi.user.enabled=true,strimzi.cluster=kafka", "kafka.group"),
]


def helm(*arguments):
    done = subprocess.run(["helm", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def render(values, *more):
    code, text, said = helm("template", "try", str(CHART), *CLUSTER, "-a", "kafka.strimzi.io/v1", "-f", str(values), *more)
    assert code == 0, f"{values.name}: {said}"
    return text


def documents(text):
    """{(kind, name): text} of what is rendered."""
    found = {}
    for document in re.split(r"^---$", text, flags=re.M):
        kind = re.search(r"^kind: (\w+)$", document, re.M)
        if kind:
            name = re.search(r"^metadata:\n  name: (\S+)$", document, re.M)
            assert name, f"a {kind[1]} without a name"
            assert (kind[1], name[1]) not in found, f"two of {kind[1]} {name[1]}"
            found[kind[1], name[1]] = document
    return found


def entry(config_map, name):
    """One file of a ConfigMap."""
    body = config_map.split(f"\n  {name}: |\n")[1]
    lines = []
    for line in body.splitlines():
        if line.strip() and not line.startswith("    "):
            break
        lines.append(line[4:])
    return "\n".join(lines).strip() + "\n"


def check_image_references():
    """Every image has a registry and a version; images of throng have the version of Cargo.toml."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    found = re.findall(r"^ *(?:image:|FROM) (\S+)", "".join((ROOT / "deploy" / name).read_text() for name in ("compose.yaml", "Dockerfile")), re.M)
    assert len(found) > 6, found
    for image in found:
        registry, _, rest = image.partition("/")
        assert registry == "localhost" or "." in registry, f"{image} has no registry"
        assert ":" in rest and not rest.endswith((":latest", ":")), f"{image} has no version"
        assert not rest.startswith("throng:") or rest == f"throng:{version}", f"{image} is not version {version}"


def check_confined(stateful_set, fixed_ids):
    flat = " ".join(stateful_set.split())
    for setting in CONFINED:
        assert setting in flat, f"the pod lacks '{setting}'"
    assert not re.search(OPEN, flat), f"the pod has {re.search(OPEN, flat)[0]}"
    assert bool(re.search(FIXED_IDS, flat)) == fixed_ids, "fixed user or groups" if not fixed_ids else "no fixed user and groups"


def rights(user, topic):
    """The operations of a KafkaUser on a topic, "" without a rule."""
    found = re.search(rf'type: topic, name: "{re.escape(topic)}", patternType: literal \}}\n +operations: \[(.*)\]', user)
    return found[1] if found else ""


def validate(text, name):
    """Validates rendered documents with kubeconform."""
    command = ["kubeconform", "-strict", "-summary", "-kubernetes-version", "1.31.0"]
    command += [argument for location in SCHEMAS for argument in ("-schema-location", location)]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and "Skipped: 0" in done.stdout, f"{name}: {done.stdout}"


def environment(stateful_set):
    pairs = re.findall(r"name: (THRONG__\w+)(?:,|\n) +value: (\"[^\"]*\"|[^ }\n]+)", stateful_set.replace(", value", ",  value"))
    return {name: value.strip('"') for name, value in pairs}


def certificates(given, moved):
    """A certificate of its own where the pages or the brokers speak TLS; without openssl that is not looked at."""
    pages = [f"THRONG__TELEMETRY__TLS__{name}_FILE" for name in ("CERT", "KEY")]
    brokers = [name for name in given if re.search("__SSL_(CA|CERTIFICATE|KEY)_LOCATION$", name)]
    if pages[0] not in given and not brokers:
        return
    if not shutil.which("openssl"):
        print("skipped: TLS of the pod (no openssl)")
        for name in [*pages, *brokers, *(name for name in given if name.endswith("SECURITY_PROTOCOL"))]:
            given.pop(name, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        cert, key = pathlib.Path(folder, "cert"), pathlib.Path(folder, "key")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
        command += ["-subj", "/CN=throng", "-keyout", str(key), "-out", str(cert)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in filter(given.__contains__, [*pages, *brokers]):
            file = pathlib.Path(moved(given[name]))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes((key if "KEY" in name.rsplit("__", 1)[-1] else cert).read_bytes())
            file.chmod(0o440)


def accepted_by(throng, rendered, folder):
    """The program takes the configuration in the environment of the pod; files of a cluster are files of this folder."""
    config_map = rendered["ConfigMap", "try-throng"]
    stateful_set = rendered["StatefulSet", "try-throng"]
    given = environment(stateful_set)
    assert len(given) == len(re.findall(r"name: THRONG__", stateful_set)) > 5, "a variable was not found"
    here = {"/etc/throng": folder / "etc", "/run/secrets": folder / "secrets", "/var/lib/throng": folder}
    for path in here.values():
        path.mkdir(parents=True, exist_ok=True)

    def moved(text):
        for there, path in here.items():
            text = text.replace(there, str(path))
        return text

    for name in re.findall(r"^  ([\w.-]+): \|$", config_map, re.M):
        (folder / "etc" / name).write_text(moved(entry(config_map, name)))
    certificates(given, moved)
    for name, value in given.items():
        given[name] = moved(value)
        if name.endswith("_FILE"):
            file = pathlib.Path(given[name])
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.write_bytes(os.urandom(32).hex().encode())
            file.chmod(0o440)
    command = [throng, "check", "-c", str(folder / "etc/throng.toml")]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main(throng):
    for link in CHART.rglob("*"):
        assert not link.is_symlink() or link.exists(), f"{link} leads nowhere"
    check_image_references()
    if not shutil.which("helm"):
        print("skipped: the chart's rendering (no helm; 'go install helm.sh/helm/v3/cmd/helm@latest')")
        return
    schemas = shutil.which("kubeconform") and SCHEMAS != ["skip"]
    if not schemas:
        print("skipped: the schemas of Kubernetes (no kubeconform; 'go install github.com/yannh/kubeconform/cmd/kubeconform@latest')")
    for values in (LEAST, ALL, OPENSHIFT):
        code, text, said = helm("lint", "--strict", str(CHART), "-f", str(values), *CLUSTER)
        assert code == 0, text + said
        if schemas:
            validate(render(values), values.name)
    least, all_on, openshift = (documents(render(values)) for values in (LEAST, ALL, OPENSHIFT))
    for rendered, kinds in ((least, OF_LEAST), (all_on, OF_ALL)):
        found = collections.Counter(kind for kind, _ in rendered)
        assert found == collections.Counter(kinds), found
    for rendered in (least, all_on, openshift):
        check_confined(rendered["StatefulSet", "try-throng"], fixed_ids=rendered is not openshift)
    dns = least["NetworkPolicy", "try-throng"]
    assert all(f"port: {port}, protocol: UDP" in dns for port in (53, 5353)) and "openshift-dns" in dns and "169.254.20.10/32" in dns, dns
    assert "ingress: []" in all_on["NetworkPolicy", "try-throng"], "an empty pagesFrom lets everybody in"
    assert all_on["StatefulSet", "try-throng"].count("scheme: HTTPS") == 3, "with TLS a probe speaks plainly"
    source, changelog = (all_on["KafkaTopic", name] for name in ("steps.raw", "steps.changelog"))
    assert "partitions: 6\n" in source and "partitions: 7\n" in changelog, "the changelog needs one partition more than the source"
    assert "cleanup.policy: compact\n" in changelog, "the changelog is not compacted"
    contributions = all_on["KafkaTopic", "steps.changelog.contributions"]
    assert "partitions: 1\n" in contributions and "compact" not in contributions, "series of several instances need one partition"
    assert "THRONG__SINK__CHANGELOG_TOPIC, value: \"steps.changelog\"" in all_on["StatefulSet", "try-throng"], "the daemon uses another changelog"
    user = all_on["KafkaUser", "try-throng"]
    for topic, operations in RIGHTS.items():
        assert rights(user, topic) == operations, f"rights on {topic}: {rights(user, topic)}"
    assert user.count("type: topic") == len(RIGHTS), user
    assert 'type: transactionalId, name: "throng.steps/", patternType: prefix' in user, user
    assert "retention.ms: 7776000000\n" in all_on["KafkaTopic", "steps.erasures"] and "compact" not in all_on["KafkaTopic", "steps.erasures"]
    assert "cleanup.policy: compact\n" in all_on["KafkaTopic", "steps.profiles"]
    other = documents(render(ALL, "--set", "kafka.erasureTopic=other"))["KafkaUser", "try-throng"]
    assert rights(other, "other") and not rights(other, "steps.erasures"), "the value does not take precedence over the file"
    rules = all_on["PrometheusRule", "try-throng"]
    for alert in re.findall(r"- alert: (\w+)", (ROOT / "deploy/prometheus/alerts.yml").read_text()):
        assert f"alert: {alert}\n" in rules, f"the PrometheusRule lacks {alert}"
    assert "kafka.strimzi.io/v1beta2" in render(ALL, "--set", "strimzi.apiVersion=kafka.strimzi.io/v1beta2")

    for setting, word in REFUSED:
        code, _, said = helm("template", "try", str(CHART), *CLUSTER, "-f", str(LEAST), "--set", setting)
        # Helm names a value pages.port or /pages/port, depending on its version.
        assert code != 0 and word in said.replace("/", "."), f"--set {setting}: {said or 'accepted'}"

    with tempfile.TemporaryDirectory() as folder:
        for name, rendered in (("least", least), ("all", all_on), ("openshift", openshift)):
            code, said = accepted_by(throng, rendered, pathlib.Path(folder, name))
            assert code == 0, f"the program refuses what {name}-values.yaml gives it:\n{said}"
        unknown = documents(render(LEAST, "--set", "env[0].name=THRONG__STATE__NOWHERE,env[0].value=x"))
        code, said = accepted_by(throng, unknown, pathlib.Path(folder, "unknown"))
        assert code == 2 and "NOWHERE" in said, "the program takes any variable, so that this shows nothing"
    print("the chart renders, refuses and configures what it should")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chart.py THRONG")
    main(str(pathlib.Path(sys.argv[1]).resolve()))
