"use strict";
// Draws status.json once per second. Text is set as text, never as markup. All requests go to this server.
(() => {
  const WIDTH = 240, HEIGHT = 74, LEAST_SPAN = 30;
  const STAGES = ["read", "decode", "encode", "treat", "verify", "commit", "learn"];
  const STAGE_WORDS = ["wait for records", "parse", "encode values", "generalize", "verify", "commit", "update the model"];
  const OUTCOMES = ["released", "suppressed", "held", "dead_lettered", "dropped"];
  const COLOURS = { released: "cool", suppressed: "grey", held: "blue", dead_lettered: "warm", dropped: "greypale" };
  const byId = (id) => document.getElementById(id);
  // Descriptions of the reasons, by name.
  const WHY = Object.fromEntries([...byId("reasons").querySelectorAll("dt")].map((name) => [name.textContent, name.nextElementSibling.textContent]));
  const SVG = byId("ink").namespaceURI;
  const colour = (name) => `var(--${name})`;

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const draw = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const key = (name) => {
    const square = make("span", { class: "key" });
    square.style.setProperty("background", colour(name));
    return square;
  };

  // Formats numbers for display.
  const whole = new Intl.NumberFormat("en");
  const count = (n) => (n == null ? "–" : whole.format(Math.round(n)));
  const short = (n) => {
    if (n == null) return "–";
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (n >= size) return (n / size).toPrecision(3) + unit;
    return n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toPrecision(2);
  };
  const share = (x) => {
    if (x == null) return "–";
    const percent = x * 100;
    if (percent > 0 && percent < 0.1) return "<0.1 %";
    if (percent > 99.9 && percent < 100) return ">99.9 %";
    return (percent >= 100 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)) + " %";
  };
  const time = (s) => (s == null ? "–" : s < 1 ? Math.round(s * 1000) + " ms" : s < 10 ? s.toFixed(2) + " s" : Math.round(s) + " s");
  const bytes = (n) => {
    if (n == null) return "–";
    for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) if (n >= size) return (n / size).toFixed(1) + " " + unit;
    return n + " B";
  };
  const age = (s) => (s < 120 ? s + " s" : s < 7200 ? Math.floor(s / 60) + " min" : Math.floor(s / 3600) + " h");
  const words = (name) => name.replaceAll("_", " ");

  // One chart per card: lines over at most two minutes, with a shared cursor.
  let cursor = null, span = LEAST_SPAN;
  const placeOf = (i, points) => WIDTH - ((points - 1 - i) * WIDTH) / (span - 1);
  const charts = [];
  const chart = (place, title, spec) => {
    const figure = make("p", { class: "figure" });
    const svg = draw("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    const axis = make("div", { class: "axis" });
    const card = make("div", { class: "card" }, make("h3", {}, title), figure, svg, axis);
    const keys = spec.stack ? spec.stack.map(([name], i) => ["s" + i, name]) : spec.keys ?? [];
    if (keys.length) card.append(make("p", { class: "stages" }, ...keys.map(([name, text]) => make("span", {}, key(name), text))));
    card.append(make("p", { class: "says" }, spec.says));
    byId(place).append(card);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      cursor = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
      refresh();
    });
    svg.addEventListener("pointerleave", () => { cursor = null; refresh(); });
    charts.push({ title, card, figure, svg, axis, ...spec });
  };

  const path = (values, top, from = null) => {
    const x = (i) => placeOf(i, values.length);
    const y = (v) => HEIGHT - 1 - (Math.min(v, top) / top) * (HEIGHT - 4);
    let line = "", open = false;
    values.forEach((v, i) => {
      if (v == null) { open = false; return; }
      line += (open ? "L" : "M") + x(i).toFixed(1) + " " + y(v).toFixed(1);
      open = true;
    });
    if (from && values.length) {
      for (let i = values.length - 1; i >= 0; i--) line += "L" + x(i).toFixed(1) + " " + y(from[i]).toFixed(1);
      line += "Z";
    }
    return line;
  };

  const nice = (top) => {
    if (!(top > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(top));
    return [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= top * 0.999);
  };

  const paint = (c, status) => {
    const points = status.history;
    const series = c.lines.map((line) => points.map((p) => line.of(p)));
    let sums = null, totals = series;
    if (c.stack) {
      sums = [points.map(() => 0)];
      for (const values of series) sums.push(values.map((v, i) => (v ?? 0) + sums[sums.length - 1][i]));
      totals = [sums[sums.length - 1]];
    }
    const top = c.top ?? nice(Math.max(0, ...totals.flat().filter((v) => v != null)));
    c.svg.replaceChildren();
    for (const part of [0, 0.5, 1]) {
      const y = HEIGHT - 1 - part * (HEIGHT - 4);
      c.svg.append(draw("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
    }
    const mark = c.mark?.(status);
    if (mark != null) {
      const y = HEIGHT - 1 - (mark / top) * (HEIGHT - 4);
      c.svg.append(draw("line", { class: "mark", x1: 0, x2: WIDTH, y1: y, y2: y }));
    }
    series.forEach((values, i) => {
      const fill = draw("path", { d: sums ? path(sums[i + 1], top, sums[i]) : path(values, top, values.map(() => 0)), class: "area" });
      fill.style.setProperty("fill", colour(c.lines[i].colour));
      if (sums) { fill.style.setProperty("opacity", "0.85"); c.svg.append(fill); return; }
      if (values.every((v) => v != null)) c.svg.append(fill);
      const line = draw("path", { d: path(values, top) });
      line.style.setProperty("stroke", colour(c.lines[i].colour));
      c.svg.append(line);
    });
    let at = points.length - 1, when = "now";
    if (cursor != null && points.length) {
      at = Math.max(0, Math.min(points.length - 1, points.length - 1 - Math.round((1 - cursor) * (span - 1))));
      const x = placeOf(at, points.length);
      c.svg.append(draw("line", { class: "cursor", x1: x, x2: x, y1: 0, y2: HEIGHT }));
      when = `${points.length - 1 - at} s ago`;
    }
    const point = points[at] ?? null;
    c.figure.replaceChildren(...c.read(point, status, cursor == null));
    c.svg.setAttribute("aria-label", `${c.title}: ${c.figure.textContent}, ${when}`);
    c.axis.replaceChildren(make("span", {}, `${span - 1} s ago`), make("span", {}, `0 – ${c.unit(top)}${c.note?.(status) ?? ""}`), make("span", {}, when));
  };

  const bold = (text, name) => make("b", name ? { class: name } : {}, text);
  const arrow = () => make("span", { class: "arrow" }, "→");
  // No value is shown for fewer than a thousand records.
  const known = (risk, value) => (risk && risk.average > 0 ? value : null);
  const pair = (of) => (p) => [bold(share(p && known(p.risk_before, of(p.risk_before))), "before"), arrow(), bold(share(p && of(p.risk_after)), "after")];
  const mean = (p, total) => (p.batches ? total / p.batches : null);
  const risk = (title, of, extra = {}) =>
    chart("risk", title, {
      top: 1, unit: share, ...extra,
      lines: [{ of: (p) => known(p.risk_before, of(p.risk_before)), colour: "warm" }, { of: (p) => of(p.risk_after), colour: "cool" }],
      keys: [["warm", "before treatment"], ["cool", "after treatment"]],
      read: pair(of),
    });

  risk("Highest risk of any record", (r) => r.highest, {
    mark: (s) => 1 / s.k, note: (s) => `, dashed 1/k = ${share(1 / s.k)}`,
    says: "The probability of picking the right person for the most exposed record: 1 / the number of people who share its values. The dashed line is the guaranteed maximum.",
  });
  risk("Average risk", (r) => r.average, {
    says: "The same probability, averaged over at least 1,000 records. It is rounded, and updated with a plan or every ten minutes, to reveal nothing about a single record.",
  });
  risk("Records in a class smaller than k", (r) => r.share_below_k, {
    says: "The share of records whose values fewer than k people share. After treatment it must be 0 %.",
  });

  chart("flow", "Throughput, records per second", {
    unit: short,
    lines: [{ of: (p) => p.consumed, colour: "grey" }, { of: (p) => p.released, colour: "cool" }],
    keys: [["grey", "read from the source"], ["cool", "released"]],
    says: "Records are processed in batches, so the curve has steps.",
    read: (p, s, now) => [
      bold(short(now ? s.consumed_per_second : p?.consumed)), " in", arrow(),
      bold(short(now ? s.released_per_second : p?.released), "after"), " out",
    ],
  });
  chart("flow", "Batch time by stage", {
    stack: STAGES.map((stage, i) => [STAGE_WORDS[i]]), unit: time,
    says: "Time of a batch in each stage, from reading to the commit that makes its release final.",
    lines: STAGES.map((stage, i) => ({ of: (p) => mean(p, p.seconds[stage]), colour: "s" + i })),
    read: (p, s) => {
      const batch = s.last && STAGES.reduce((sum, stage) => sum + s.last.seconds[stage], 0);
      const seen = p && p.batches ? STAGES.reduce((sum, stage) => sum + p.seconds[stage], 0) / p.batches : batch;
      const wait = p && p.append_to_commit_seconds > 0 ? ` append to commit ${time(p.append_to_commit_seconds)}` : " per batch";
      return [bold(time(seen)), wait];
    },
  });
  chart("flow", "Information loss", {
    unit: share, of_fragments: true,
    lines: [{ of: (p) => p.loss, colour: "warm" }],
    says: "Detail lost by generalization: 0 % is every value unchanged, 100 % is every value suppressed (*).",
    read: (p) => [bold(share(p?.loss)), ` of the detail; ${share(p?.exact_share)} of cells exact`],
  });
  chart("flow", "Suppressed", {
    unit: short,
    lines: [{ of: (p) => p.suppressed, colour: "grey" }],
    says: "Records of which no line is released. The reasons are below; records that series represent are included.",
    read: (p, s, now) => {
      // Current rate: the average over the last ten seconds, because a single second may have no batch.
      const seen = now ? s.history.slice(-10) : [p].filter(Boolean);
      const sum = (name) => seen.reduce((total, point) => total + point[name], 0);
      const [suppressed, released] = [sum("suppressed"), sum("released")];
      const part = suppressed + released ? suppressed / (suppressed + released) : 0;
      return [bold(share(part)), ` of records; ${short(seen.length ? suppressed / seen.length : 0)} per second`];
    },
  });
  chart("flow", "Lag behind the source", {
    unit: short,
    lines: [{ of: (p) => p.lag_records, colour: "blue" }],
    says: "Records that were written to the source and not read yet. If the lag grows, records arrive faster than they are processed.",
    read: (p) => (p && p.lag_records == null ? [bold("–"), " this source has no lag"] : [bold(short(p?.lag_records)), " records"]),
  });
  chart("flow", "Held for a larger class", {
    unit: short, of_fragments: true,
    lines: [{ of: (p) => p.held, colour: "blue" }],
    says: "Records that wait for later batches (privacy.max_hold_batches), where more people may share their values.",
    read: (p) => [bold(count(p?.held)), " records"],
  });

  const rows = (id, entries, none) => {
    const shown = entries.filter(([, value]) => value !== 0);
    const list = shown.length ? shown : [[none, null]];
    byId(id).replaceChildren(...list.map(([name, value]) =>
      make("tr", value == null ? { class: "zero" } : {}, make("td", {}, name),
        make("td", { class: "n" }, value == null ? "" : typeof value === "number" ? count(value) : value))));
  };

  const about = (n, unit = count) => (n ? `about ${unit(n)}` : 0);
  const reason = ([name, n]) => [WHY[name] ? `${words(name)}: ${WHY[name]}` : words(name), n];

  // Subjects and records that the release represents. Subjects are not counted for fragments.
  const shareOfSeries = (series, unreadable) => {
    const readable = series.records === 0 && series.pending > 0 ? 0 : series.records + series.late;
    const records = readable && readable + unreadable;
    return records ? share(series.represented / records) : "none yet";
  };
  const drawRepresented = (s) => {
    const { series, represented: by } = s;
    const facts = [
      ...(series ? [
        ["people in published rows of series", count(series.people)],
        ["records in published rows of series", shareOfSeries(series, by.unreadable)],
        ...(series.pending ? [["records of epochs that are still open", count(series.pending)]] : []),
        ["rows published", count(series.rows)],
        ["rows withheld: too few people present", count(series.too_few)],
        ["rows published as shares of intervals, because one or two people dominate the sum", count(series.binned)],
        ["rows withheld: one or two people dominate, or all have the same value", count(series.dominated)],
        ["records late, ahead of the clock, or without time or subject", count(series.late)],
      ] : []),
      ...(s.only_series ? [] : [["records with a released line", by.by_fragments == null ? "none yet" : share(by.by_fragments)]]),
    ];
    byId("represented-facts").replaceChildren(...facts.map(([name, value]) =>
      make("tr", {}, make("td", {}, name), make("td", { class: "n" }, value))));
    byId("represented-line").textContent = series
      ? "A person or record is represented when its values are part of a published row. Records of people in their warm-up are not represented yet."
      : "A record is represented when one of its lines was released.";
    const shares = [by.by_fragments, by.by_series].filter((share) => share != null);
    const most = shares.length ? Math.max(...shares) : null;
    const banner = byId("unrepresented");
    banner.hidden = !(most != null && most < by.minimum);
    banner.textContent = banner.hidden ? "" :
      `The release represents ${share(most)} of the records; release.min_represented requires ${share(by.minimum)}. ` +
      (series ? "The reasons are below." : "Statistics over time ([[series]]) represent most records of people with many records: throng check --sample compares fragments and series.");
    byId("fragments").hidden = s.only_series;
  };

  const account = (s) => {
    const values = { ...s.totals, held: s.held };
    byId("consumed").textContent = count(values.consumed);
    byId("conserved").textContent = s.conserved ? "– and it adds up" : "– it does NOT add up";
    const bar = byId("bar"), list = byId("outcomes");
    if (!bar.children.length) {
      for (const name of OUTCOMES) {
        const part = make("div");
        part.style.setProperty("background", colour(COLOURS[name]));
        bar.append(part);
        list.append(make("li", {}, key(COLOURS[name]), make("b"), " " + words(name), make("span")));
      }
    }
    OUTCOMES.forEach((name, i) => {
      bar.children[i].style.setProperty("flex", `${values[name]} 0 0`);
      const part = values.consumed ? values[name] / values.consumed : 0;
      list.children[i].querySelector("b").textContent = count(values[name]);
      list.children[i].querySelector("span:last-child").textContent = ` (${share(part)})`;
    });
    bar.setAttribute("aria-label", OUTCOMES.map((name) => `${words(name)} ${count(values[name])}`).join(", "));
  };

  const plan = (s) => {
    const known = s.plan && typeof s.plan === "object" ? s.plan : {};
    const groups = Array.isArray(known.groups) ? known.groups : [];
    const removed = known.identifiers?.length ? `; removed as identifiers: ${known.identifiers.join(", ")}` : "";
    const shared = known.shared?.length ? `; in several groups: ${known.shared.map((s) => `${s.attribute} at level ${s.level} (${s.groups.join(", ")})`).join("; ")}` : "";
    const primed = known.primed ? `, from ${count(known.rows)} records of plan.prime` : "";
    const marked = (names, role) => (names ?? []).map((name) => (role ? `${name} (${role})` : name));
    const attributesOf = (g) =>
      [...marked(g.quasi), ...marked(g.sensitive, "sensitive"), ...marked(g.insensitive, "insensitive")].join(", ");
    byId("plan-line").textContent = known.version == null ? "No plan yet." : `Plan ${known.version}${primed}${removed}${shared}. It defines how values may be generalized; each group of attributes is released as a separate record, and the records of one person are not released together.`;
    const described = groups.map((g) => [g.name, attributesOf(g), g.nodes, s.fragments_by_group[s.groups.indexOf(g.name)]]);
    const names = groups.map((g) => g.name);
    s.groups.forEach((name, i) => {
      if (!names.includes(name) && (s.fragments_by_group[i] || name !== "other")) described.push([name, "", null, s.fragments_by_group[i]]);
    });
    byId("groups").replaceChildren(...described.map(([name, attributes, nodes, fragments]) =>
      make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, String(name)), make("td", { role: "cell" }, attributes),
        make("td", { role: "cell", class: "n", "data-name": "ways to generalize" }, count(nodes)),
        make("td", { role: "cell", class: "n", "data-name": "records released" }, count(fragments)))));
    const chosen = known.chosen;
    const apart = { identifier: "one of them identifies people", pace: "it changes at another rate within a person", width: "the group would be too wide", elsewhere: "it is more closely related to the attributes of another group", compartment: "a rule keeps it in a compartment", price: "the loss would be too high" };
    byId("chosen-line").textContent = chosen ? `The planner chose the groups (plan.groups = "${chosen.how}").` : "";
    byId("wishes").replaceChildren(...(chosen?.wishes ?? []).map((w) => make("li", {},
      `[[keep]] ${w.attributes.join(", ")}: ${w.together.length > 1 ? `${w.together.join(", ")} are released together, for ${w.loss ?? "some"} lost cells per record` : "each is released separately"}` +
      w.apart.map((a) => `; without ${a.attribute}: ${apart[a.why]}`).join(""))));
    treatments(known);
  };

  const treatments = (known) => {
    const treated = { suppress_cell: "exact or suppressed", suppress_record: "exact, or the line is suppressed", perturb: "the closest number of a large enough class", aggregate: "the mean of a class", compartment: "in a compartment" };
    const words = (known.treatments ?? []).map((t) => `${t.attribute} (${treated[t.treatment]})`);
    byId("treatments").textContent = words.length > 0 ? `Treated by rules: ${words.join(", ")}.` : "";
  };

  // Attributes on a circle. A solid curve means that one predicts another on average, a dashed one that single values do.
  const graph = (inferences, strongest) => {
    const svg = byId("inferences");
    const singles = strongest.slice(0, 12).map((i) => ({ ...i, single: true }));
    const drawn = [...singles, ...inferences];
    const names = [...new Set(drawn.flatMap((i) => [i.from, i.to]))].sort();
    const [x, y, r] = [230, 165, 112];
    const at = (name, out = 0) => {
      const turn = (2 * Math.PI * names.indexOf(name)) / names.length - Math.PI / 2;
      return [x + (r + out) * Math.cos(turn), y + (r + out) * Math.sin(turn)];
    };
    const curves = drawn.reverse().map((i) => {
      const [[ax, ay], [bx, by]] = [at(i.from), at(i.to)];
      const path = draw("path", {
        d: `M${ax.toFixed(1)} ${ay.toFixed(1)}Q${x} ${y} ${bx.toFixed(1)} ${by.toFixed(1)}`,
        "stroke-width": (i.single ? 0.8 : 0.4 + 2.6 * i.mean ** 2).toFixed(2),
        "stroke-opacity": (i.single ? 0.9 : 0.12 + 0.8 * i.mean ** 2).toFixed(2),
        ...(i.single ? { class: "single" } : {}),
      });
      const title = draw("title", {});
      title.textContent = i.single
        ? `a value of ${i.from} predicts one of ${i.to}: ${share(i.probability)}`
        : `${i.from} predicts ${i.to}: ${share(i.mean)}`;
      path.append(title);
      return path;
    });
    const labels = names.flatMap((name) => {
      const [[cx, cy], [tx, ty]] = [at(name), at(name, 8)];
      const text = draw("text", { x: tx.toFixed(1), y: ty.toFixed(1), "text-anchor": tx > x + 1 ? "start" : tx < x - 1 ? "end" : "middle" });
      text.textContent = name;
      return [draw("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 2.5 }), text];
    });
    svg.replaceChildren(...curves, ...labels);
  };

  let drawn = "";
  const evidence = (s) => {
    const found = s.plan?.evidence;
    byId("evidence").hidden = !found;
    // Redrawn only if the plan has changed.
    const now = JSON.stringify(found ?? null);
    if (!found || now === drawn) return;
    drawn = now;
    const all = found.qids_by_size.reduce((sum, n) => sum + n, 0);
    byId("evidence-line").textContent =
      `${count(found.records)} recent records were searched for plan ${found.plan}` +
      (found.complete ? "." : "; the search timed out, so there may be more.");
    const saved = found.aggregation;
    const facts = [
      ["combinations that single out many people", count(all)],
      ...found.qids_by_size.map((n, i) => [`of ${i + 1} attribute${i ? "s" : ""}`, count(n)]).filter(([, n]) => n !== "0"),
      ["expected loss of the plan", share(found.expected_loss)],
      ...(saved ? [["distinct values, about", count(saved.nodes)], ["pairs of co-occurring values, about", count(saved.edges)]] : []),
      ["searched in", `${time(found.seconds)} by the ${found.computed_by === "cpu" ? "CPU" : "GPU"}`],
    ];
    byId("evidence-facts").replaceChildren(...facts.map(([name, value]) =>
      make("tr", {}, make("td", {}, name), make("td", { class: "n" }, value))));
    byId("qids").replaceChildren(...found.minimal_qids.slice(0, 12).map((set) => make("span", {}, set.join(" + "))),
      ...(all > 12 ? [`and ${count(all - 12)} more`] : all ? [] : ["none"]));
    graph(found.inferences, found.strongest);
    byId("strongest").replaceChildren(...(found.strongest.length ? found.strongest.slice(0, 8).map((i) =>
      make("tr", {}, make("td", {}, `${i.from} → ${i.to}`), make("td", { class: "n" }, share(i.probability)),
        make("td", { class: "n" }, `about ${count(i.support)} people`)))
      : [make("tr", { class: "zero" }, make("td", {}, "none"))]));
  };

  // Charts of the series. The daemon draws them, and they change when rows are published.
  let chartedRows = 0;
  const series = async (published) => {
    if (!published || published.rows === chartedRows) return;
    chartedRows = published.rows;
    const answer = await fetch("series.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const charts = await answer.json();
    byId("series").hidden = charts.length === 0;
    byId("charts").replaceChildren(...charts.map(({ title, drawing }) => {
      const drawn = new DOMParser().parseFromString(drawing, "text/html").body.firstElementChild;
      return make("div", { class: "card" }, make("h3", {}, title), document.importNode(drawn, true));
    }));
  };

  let status = null;
  const refresh = () => {
    if (!status) return;
    const series = status.series;
    byId("promise").textContent = series
      ? `series represent ${count(series.people)} people and ${shareOfSeries(series)} of records`
      : `each record is released in a class of at least ${status.k} people`;
    const pill = byId("state");
    const alarm = !status.conserved ? "records do not add up" : status.verification_refusals ? "verification refused a batch" : "";
    pill.className = "pill " + (status.ready && !alarm ? "good" : "bad");
    pill.textContent = alarm || (status.ready ? "ready" : status.reasons.join("; "));
    byId("doubts").hidden = status.doubts.length === 0;
    byId("doubt-list").replaceChildren(...status.doubts.map((doubt) => make("li", {}, doubt)));
    byId("version").textContent = `version ${status.version}${status.policy ? `, policy ${status.policy}` : ""}, up ${age(status.uptime_seconds)}`;
    span = Math.max(LEAST_SPAN, status.history.length);
    charts.forEach((c) => {
      c.card.hidden = status.only_series && c.of_fragments === true;
      paint(c, status);
    });
    drawRepresented(status);
    account(status);
    plan(status);
    evidence(status);
    const last = status.last;
    rows("suppressed", Object.entries(status.suppressed).map(reason), "none");
    rows("dead", Object.entries(status.dead_lettered).map(reason), "none");
    rows("sizes", [
      ["batches committed", status.batches_committed], ["batches aborted and read again", status.batches_aborted],
      ["memory of the ledger of people", last ? about(last.ledger_bytes, bytes) : 0],
      ["records in the window that plans are made from", last?.window_records ?? 0],
      ["distinct values in it", about(last?.model_nodes)], ["pairs of co-occurring values", about(last?.model_edges)],
      ["memory of their counts", last ? about(last.model_bytes, bytes) : 0], ["values in all dictionaries", about(last?.dictionary_values)],
      ["state on disk", last ? about(last.state_bytes, bytes) : 0], ["memory of the process", about(status.resident_bytes, bytes)],
    ], "none");
  };

  const poll = async () => {
    try {
      const answer = await fetch("status.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      status = await answer.json();
      document.body.classList.remove("stale");
      refresh();
      await series(status.series);
    } catch (error) {
      document.body.classList.add("stale");
      byId("state").className = "pill bad";
      byId("state").textContent = "the daemon does not answer";
    }
    setTimeout(poll, 1000);
  };
  poll();
})();
