"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const palette = ["#1f77b4", "#d9541e", "#2a9d5c", "#8e4fb8", "#c29a00", "#b02a50", "#3aa6b9",
                 "#6b5b4b", "#e377c2", "#7f7f7f"];
const colour = (index) => palette[index % palette.length];
// Every other line is dashed, so that of two equal curves both are seen.
const dash = (index) => index % 2 === 1 ? "dash" : "solid";
const byId = (id) => document.getElementById(id);

function element(tag, parent, text) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

// ---- Title ----
document.title = data.title + " - aah report";
byId("title").textContent = data.title;
byId("subtitle").textContent = data.subtitle;

// ---- Comparison ----
const fixed = (digits) => (x) => x.toFixed(digits);
const thousands = (x) => Math.round(x).toLocaleString("en-US");
const columns = [
  ["validation_loss", "validation loss", fixed(4), "min",
   "Mean cross entropy on the validation text, in nats per token: lower is better."],
  ["bits_per_byte", "bits per byte", fixed(4), "min",
   "The same loss per byte of text, in bits: comparable across tokenisers."],
  ["allocated_context_ratio", "allocated context", fixed(3), "",
   "Allocated context ratio: the mean window over the context, over heads and layers."],
  ["visible_pair_ratio", "visible pairs", fixed(3), "",
   "Visible-pair ratio: (query, key) pairs that a kernel must compute, over those of full causal " +
   "attention."],
  ["flops_per_token", "MFLOP per token", (x) => (x / 1e6).toFixed(2), "",
   "Floating-point operations of a forward pass per token, estimated from the model's sizes and " +
   "its windows; the mean over steps."],
  ["tokens_per_second", "tokens/s", thousands, "max",
   "Trained tokens per second of whole steps, the median over steps."],
  ["speed", "speed over " + (runs.length ? runs[0].name : "the first"), (x) => x.toFixed(2) + "×",
   "", "Tokens per second over those of the first run."],
  ["attention_share", "attention share", (x) => (100 * x).toFixed(1) + "%", "",
   "Time inside attention, forward and backward, over the step's time; the median over steps."],
  ["control_share", "control share", (x) => (100 * x).toFixed(1) + "%", "",
   "Time that deciding on windows took, over that of all steps."],
  ["peak_memory_bytes", "peak memory", (x) => thousands(x / 1048576) + " MiB", "min",
   "The most memory the training process held (resident set)."],
  ["seconds", "training time", (x) => x >= 60 ? Math.floor(x / 60) + " min " +
   Math.round(x % 60) + " s" : x.toFixed(1) + " s", "", "Of all steps, validation left out."],
];

function fillFigures() {
  const table = byId("figures");
  const head = element("tr", table);
  element("th", head, "run");
  for (const [, title, , , meaning] of columns) element("th", head, title).title = meaning;
  const best = columns.map(([key, , show, goal]) => {
    const values = runs.filter((r) => r.finished && r.figures[key] !== null)
                       .map((r) => r.figures[key]);
    if (!goal || values.length < 2) return null;
    return show(goal === "min" ? Math.min(...values) : Math.max(...values));
  });
  runs.forEach((run, index) => {
    const row = element("tr", table);
    const name = element("td", row);
    element("span", name).className = "swatch";
    name.firstChild.style.background = colour(index);
    name.append(run.name + (run.finished ? "" :
                            ` (step ${run.figures.step} of ${run.figures.steps})`));
    columns.forEach(([key, , show], column) => {
      const value = run.figures[key];
      const text = value === null ? "–" : show(value);
      const cell = element("td", row, text);
      if (run.finished && text === best[column]) cell.className = "best";
    });
  });
}

// ---- Loss ----
// Exponential running mean without the bias of its start.
function smooth(values) {
  const keep = Math.max(0, Math.min(0.95, 1 - 12 / values.length));
  let mean = 0, weight = 0;
  return values.map((value) => {
    mean = keep * mean + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return mean / weight;
  });
}

function secondsAt(run, step) {
  const index = run.train.step.findIndex((s) => s >= step);
  if (step === 0 || !run.train.step.length) return 0;
  return run.train.elapsed[index < 0 ? run.train.elapsed.length - 1 : index];
}

function lossTraces(axis) {
  const traces = [];
  runs.forEach((run, index) => {
    const x = axis === "step" ? run.train.step : run.train.elapsed;
    traces.push({
      x, y: smooth(run.train.loss), name: run.name + ", training", legendgroup: run.name,
      showlegend: false, mode: "lines", line: {color: colour(index), width: 1}, opacity: 0.45,
      hovertemplate: "%{y:.4f}<extra>" + run.name + ", training</extra>",
    });
    traces.push({
      x: axis === "step" ? run.validation.step : run.validation.step.map((s) => secondsAt(run, s)),
      y: run.validation.loss, name: run.name, legendgroup: run.name, mode: "lines+markers",
      line: {color: colour(index), width: 2.2, dash: dash(index)}, marker: {size: 6},
      customdata: run.validation.bits_per_byte,
      hovertemplate: "%{y:.4f} (%{customdata:.4f} bits per byte)<extra>" + run.name + "</extra>",
    });
  });
  return traces;
}

function lossRange() {
  const tails = runs.flatMap((run) => run.train.loss.slice(Math.floor(run.train.loss.length / 20)))
      .concat(runs.flatMap((run) => run.validation.loss));
  if (!tails.length) return undefined;
  const low = Math.min(...tails), high = Math.max(...tails);
  const margin = 0.05 * (high - low) + 1e-3;
  return [low - margin, high + margin];
}

function drawLoss(axis) {
  const layout = {
    height: 460, margin: {l: 60, r: 10, t: 10, b: 50}, hovermode: "x unified",
    xaxis: {title: {text: axis === "step" ? "step" : "training time, seconds"},
            gridcolor: "#e9edf1", zeroline: false},
    yaxis: {title: {text: "loss, nats per token"}, gridcolor: "#e9edf1", zeroline: false,
            range: lossRange()},
    legend: {orientation: "h", y: 1.08}, modebar: {orientation: "v"}, font: {size: 13},
    plot_bgcolor: "#fff",
  };
  Plotly.react("loss", lossTraces(axis), layout, {displaylogo: false, responsive: true});
  markChoice(byId("axis"), axis);
}

function addAxisButtons() {
  addChoice(byId("axis"), [["step", "by step"], ["time", "by training time"]], drawLoss);
}

// ---- Settings and machine ----
// Of a section with many keys only its name: a run with a controller has all of its settings.
function withoutLongSections(keys) {
  const section = (key) => key.slice(0, key.lastIndexOf("."));
  const isLong = (key) => keys.filter((other) => section(other) === section(key)).length > 6;
  return [...new Set(keys.map((key) => isLong(key) ? section(key) : key))];
}

function fillSettings() {
  byId("differences").textContent = data.differences.length
      ? "The runs differ in " + withoutLongSections(data.differences).join(", ") +
        "; all other settings are equal."
      : runs.length > 1 ? "All settings are equal." : "";
  for (const run of runs) {
    const details = element("details", byId("configs"));
    element("summary", details, run.name + " – " + run.folder);
    element("pre", details, run.config);
  }
}

function fillMachines() {
  for (const machine of data.machines) {
    if (data.machines.length > 1) element("p", byId("machines"), machine.runs.join(", ") + ":");
    const table = element("table", byId("machines"));
    table.className = "facts";
    for (const [name, value] of machine.facts) {
      const row = element("tr", table);
      element("td", row, name);
      element("td", row, value);
    }
  }
}

fillFigures();
addAxisButtons();
drawLoss("step");
drawAllocated();
addMaps();
addSearch();
addTree();
fillSettings();
fillMachines();
