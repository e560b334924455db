"use strict";
// ---- The search for windows: costs, entropy and moves over steps, a heat map of the weights ----
// Shared with the main script: runs, byId, element; with heat_map.js its maps.

const search = {run: null, show: "expected", slider: null, layer: 0, head: 0, listens: false};

function phaseShapes(phases) {
  const shades = {warmup: "#eef1f4", search: "#fbf3e3", plan: "#ffffff"};
  return phases.map(([phase, from, to]) => ({
    type: "rect", xref: "x", yref: "paper", x0: from - 0.5, x1: to + 0.5, y0: 0, y1: 1,
    fillcolor: shades[phase] || "#fff", line: {width: 0}, layer: "below",
  })).concat(phases.slice(1).map(([, from]) => ({
    type: "line", xref: "x", yref: "paper", x0: from - 0.5, x1: from - 0.5, y0: 0, y1: 1,
    line: {color: "#8793a1", width: 1, dash: "dot"},
  })));
}

function phaseTitles(phases) {
  const whole = phases[phases.length - 1][2] - phases[0][1] + 1;
  const long = phases.filter(([, from, to]) => (to - from + 1) / whole > 0.04);
  return long.map(([phase, from, to]) => ({
    text: phase, x: (from + to) / 2, y: 1, xref: "x", yref: "paper",
    yanchor: "bottom", showarrow: false, font: {color: "#5a6675", size: 12},
  }));
}

// Of each of the plots beneath each other, at its upper left.
function plotTitles() {
  const titles = [[1, "cost, as a share of full attention's"],
                  [0.45, "entropy of the weights, nats"], [0.18, "heads that a decision moved"]];
  return titles.map(([y, text]) => ({
    text, x: 0, y, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom",
    yshift: y === 1 ? 18 : 2, showarrow: false, font: {size: 12.5, color: "#1c2430"},
  }));
}

// In the warmup no weight has learned anything yet.
function searchTraces({curve, decisions, phases, budget}) {
  const begin = phases.find(([phase]) => phase !== "warmup");
  const first = begin ? curve.step.findIndex((step) => step >= begin[1]) : curve.step.length;
  const cut = (name) => first < 0 ? [] : curve[name].slice(first);
  const line = (name, label, style) => ({
    x: cut("step"), y: cut(name), name: label, mode: "lines", line: style,
    hovertemplate: "%{y:.4f}<extra>" + label + "</extra>",
  });
  const name = (moved, first) => first && moved === 0 ? "the first plan" : `${moved} heads moved`;
  return [
    {x: [phases[0][1], phases[phases.length - 1][2]], y: [budget.value, budget.value],
     mode: "lines", name: "budget", line: {color: "#1c2430", width: 1, dash: "dot"},
     hoverinfo: "skip"},
    line("target", "target", {color: "#8793a1", width: 2, dash: "dash"}),
    line("expected", "expected, by the weights", {color: "#1f77b4", width: 2.2}),
    line("hard", "hard: likeliest windows, then the plan",
         {color: "#d9541e", width: 2, shape: "hv"}),
    {...line("entropy", "entropy", {color: "#2a9d5c", width: 2}), yaxis: "y2", showlegend: false,
     customdata: cut("temperature"),
     hovertemplate: "%{y:.3f} nats at temperature %{customdata:.3f}<extra>entropy</extra>"},
    {x: decisions.map(([step]) => step), y: decisions.map(([, moved]) => moved), type: "scatter",
     mode: "markers", marker: {color: "#8e4fb8", size: 7}, yaxis: "y3", showlegend: false,
     cliponaxis: false,
     error_y: {type: "data", symmetric: false, array: decisions.map(() => 0),
               arrayminus: decisions.map(([, moved]) => moved), color: "#8e4fb8", width: 0,
               thickness: 2},
     text: decisions.map(([, moved], i) => name(moved, i === 0)),
     customdata: decisions.map(([, , gap]) => gap),
     hovertemplate: "%{text}, duality gap %{customdata:.3g}<extra>decision</extra>"},
  ];
}

function drawCurves() {
  const {phases, decisions} = search.run.selection;
  if (phases.every(([phase]) => phase === "warmup")) return Plotly.purge("search_curves");
  const snapshot = search.slider.steps[search.slider.index];
  const grid = {gridcolor: "#e9edf1", zeroline: false};
  const narrow = pageWidth() < 600;  // where the legend has a line for each name
  const mostMoved = Math.max(1, ...decisions.map(([, moved]) => moved));
  const shapes = phaseShapes(phases);
  if (snapshot !== undefined) {
    shapes.push({type: "line", xref: "x", yref: "paper", x0: snapshot, x1: snapshot, y0: 0, y1: 1,
                 line: {color: "#b02a50", width: 1}});
  }
  Plotly.react("search_curves", searchTraces(search.run.selection), {
    height: narrow ? 660 : 590, margin: {l: 46, r: 12, t: narrow ? 140 : 84, b: 46},
    font: {size: 13}, hovermode: "x", plot_bgcolor: "rgba(0,0,0,0)",
    shapes, annotations: phaseTitles(phases).concat(plotTitles()),
    xaxis: {title: {text: "step"}, ...grid, anchor: "y3",
            range: [phases[0][1] - 0.5, phases[phases.length - 1][2] + 0.5]},
    yaxis: {...grid, domain: [0.55, 1], range: [0, 1.04]},
    yaxis2: {...grid, domain: [0.28, 0.45], rangemode: "tozero", nticks: 4},
    yaxis3: {...grid, domain: [0, 0.18], range: [0, 1.1 * mostMoved], tick0: 0,
             dtick: Math.ceil(mostMoved / 3)},
    legend: {orientation: "h", yref: "container", y: 1, yanchor: "top", x: 0},
  }, {displaylogo: false, responsive: true, displayModeBar: narrow ? false : undefined});
}

// ---- Heat map of the weights ----
const expectedWindow = (weights, candidates) => {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Math.round(weights.reduce((total, w, i) => total + w * candidates[i], 0) / sum);
};
const likeliestWindow = (weights, candidates) => candidates[weights.indexOf(Math.max(...weights))];

function drawSearchMap() {
  const {candidates, snapshots} = search.run.selection;
  const snapshot = snapshots[search.slider.index];
  const window = search.show === "expected" ? expectedWindow : likeliestWindow;
  drawHeatMap(byId("search_map"),
              snapshot.weights.map((layer) => layer.map((head) => window(head, candidates))), {
    title: search.show === "expected" ? "expected window, tokens" : "likeliest window, tokens",
    titleColour: "#1c2430", shades: windowShades(logScale(candidates)), showBar: true,
    hover: "layer %{y}, head %{x}<br>%{text} tokens",
    marked: search, width: pageWidth(),
  });
  if (search.listens) return;
  search.listens = true;
  const choose = (event) => {
    const {x, y} = event.points[0];
    if (x === search.head && y === search.layer) return;
    search.head = x;
    search.layer = y;
    drawSearchMap();
    drawWeights();
  };
  byId("search_map").on("plotly_hover", choose);
  byId("search_map").on("plotly_click", choose);
}

function drawWeights() {
  const {candidates, snapshots} = search.run.selection;
  const snapshot = snapshots[search.slider.index];
  const {layer, head} = search;
  const weights = snapshot.weights[layer][head];
  const scale = logScale(candidates);
  const planned = snapshot.windows ? snapshot.windows[layer][head] : null;
  const box = byId("search_weights");
  box.replaceChildren();
  element("b", box, `Layer ${layer}, head ${head}`);
  element("span", box, ": weight of each window");
  const bars = element("div", box);
  bars.className = "bars";
  weights.forEach((weight, i) => {
    const name = element("span", bars, candidates[i].toLocaleString("en-US"));
    if (candidates[i] === planned) name.className = "plan";
    const bar = element("i", element("div", bars));
    bar.style.width = weight / 10 + "%";
    bar.style.background = windowColour(candidates[i], scale, 1);
    element("span", bars, (weight / 10).toFixed(1) + "%");
  });
  element("span", box, planned ? `The plan gives it ${planned.toLocaleString("en-US")} tokens.`
                               : "No plan yet: all of them are mixed.");
}

function drawSearch() {
  drawCurves();
  if (!search.run.selection.snapshots.length) return;
  drawSearchMap();
  drawWeights();
}

// First shows the head that sees farthest in the end.
function markWidest({snapshots, candidates}) {
  let widest = 0;
  const last = snapshots[snapshots.length - 1];
  last.weights.forEach((heads, layer) => heads.forEach((weights, head) => {
    const window = expectedWindow(weights, candidates);
    if (window > widest) Object.assign(search, {layer, head});
    widest = Math.max(widest, window);
  }));
}

function chooseSearchRun(run) {
  search.run = run;
  const {budget, snapshots, all_snapshots: all} = run.selection;
  byId("search_note").textContent = `The budget of ${run.name} is ${budget.text}. ` +
      (!snapshots.length ? "Its search has not begun."
       : "Hover over a head to see its weights; the slider, a red line above, moves through " +
         "the search" +
         (snapshots.length < all ? `, ${snapshots.length} of ${all.toLocaleString("en-US")} ` +
                                   "snapshots of the weights." : "."));
  for (const id of ["search_map", "search_weights", "search_kind"]) {
    byId(id).style.display = snapshots.length ? "" : "none";
  }
  if (snapshots.length) markWidest(run.selection);
  search.slider.setSteps(snapshots.map((snapshot) => snapshot.step));
  search.slider.show();
}

function setSearchShown(show) {
  search.show = show;
  markChoice(byId("search_kind"), show);
  if (search.run.selection.snapshots.length) drawSearchMap();
}

function addSearch() {
  const searching = runs.filter((run) => run.selection);
  if (!searching.length) return;
  byId("search").hidden = false;
  search.slider = new StepSlider("search", drawSearch);
  const choice = byId("search_run");
  searching.forEach((run, index) => { element("option", choice, run.name).value = index; });
  choice.onchange = () => chooseSearchRun(searching[Number(choice.value)]);
  choice.style.display = searching.length > 1 ? "" : "none";
  addChoice(byId("search_kind"),
            [["expected", "expected window"], ["likeliest", "likeliest window"]], setSearchShown);
  markChoice(byId("search_kind"), search.show);
  chooseSearchRun(searching[0]);
}
