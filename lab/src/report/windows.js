"use strict";
// ---- Windows: allocated context, heat maps with a slider, the hierarchy of a layer ----
// Shared with the main script: data, runs, colour, dash, byId, element; with heat_map.js its maps.

// ---- Allocated context over steps ----
function drawAllocated() {
  const traces = runs.map((run, index) => ({
    x: run.train.step, y: run.train.allocated, name: run.name, mode: "lines",
    line: {color: colour(index), width: 2, dash: dash(index)},
    hovertemplate: "%{y:.3f}<extra>" + run.name + "</extra>",
  }));
  Plotly.newPlot("allocated", traces, {
    height: 340, margin: {l: 60, r: 10, t: 10, b: 50}, hovermode: "x unified", font: {size: 13},
    xaxis: {title: {text: "step"}, gridcolor: "#e9edf1", zeroline: false},
    yaxis: {title: {text: "allocated context ratio"}, gridcolor: "#e9edf1", range: [0, 1.04],
            zeroline: false},
    legend: {orientation: "h", y: 1.12}, modebar: {orientation: "v"}, showlegend: true,
    plot_bgcolor: "#fff",
  }, {displaylogo: false, responsive: true});
}

// ---- Heat maps ----
const maps = {show: "windows", slider: null, boxes: []};
const allWindows = () => runs.flatMap((run) => run.windows.values);

// [layers][heads] of windows after the slider's first index + 1 steps.
function windowsAt(run, index) {
  const {heads, layers, context, states, values} = run.windows;
  const flat = new Array(heads * layers).fill(context);
  for (let i = 0; i <= index && i < states.length; ++i) {
    for (let j = 0; j < states[i].length; j += 2) flat[states[i][j]] = values[states[i][j + 1]];
  }
  return Array.from({length: layers}, (_, layer) => flat.slice(layer * heads, (layer + 1) * heads));
}

function changeShades() {
  const most = Math.max(1, ...runs.flatMap((run) => run.windows.changes.flat()));
  return {place: (count) => count, low: 0, high: most, colours: [[0, "#f3f4f6"], [1, "#b02a50"]],
          bar: {thickness: 12, title: {text: "changes", side: "right"}}};
}

function drawMaps() {
  const changes = maps.show === "changes";
  const shades = changes ? changeShades() : windowShades(logScale(allWindows()));
  runs.forEach((run, index) => {
    if (!maps.boxes[index]) maps.boxes[index] = element("div", byId("maps"));
    const {decisions} = run.windows;
    const times = "%{text} changes" + (decisions ? ` in ${decisions} decisions` : "");
    drawHeatMap(maps.boxes[index],
                changes ? run.windows.changes : windowsAt(run, maps.slider.index), {
      title: run.name, titleColour: colour(index), shades, showBar: index === runs.length - 1,
      hover: "layer %{y}, head %{x}<br>" + (changes ? times : "%{text} tokens"),
      width: pageWidth(),
    });
  });
}

function setShown(show) {
  maps.show = show;
  maps.slider.stop();
  markChoice(byId("map_kind"), show);
  byId("map_steps").style.visibility = show === "windows" ? "visible" : "hidden";
  maps.slider.show();
}

function addMaps() {
  const {steps, all} = data.slider;
  maps.slider = new StepSlider("map", drawMaps);
  maps.slider.setSteps(steps);
  const changing = runs.some((run) => run.windows.changes.flat().some((count) => count > 0));
  const learning = runs.some((run) => run.selection);
  if (changing) {
    addChoice(byId("map_kind"), [["windows", "windows"], ["changes", "how often they changed"]],
              setShown);
  }
  byId("map_note").textContent = !changing
      ? "No window changed in these runs" +
        (learning ? "." : ": nothing decided them, they are as the settings say.")
      : steps.length < all
      ? `The slider stops at ${steps.length} of the ${all.toLocaleString("en-US")} steps in which ` +
        "a window changed."
      : "The slider stops at every step in which a window changed.";
  if (learning) {
    byId("map_note").textContent +=
        " While windows are searched, the widest that a head still computes.";
  }
  setShown("windows");
}

// ---- Hierarchy ----
const tree = {run: null, layer: 0, index: 0};
const groupKey = (level, group) => level + "/" + group;

function groupHover(group) {
  const [level, number, , heads, window, cut, ...features] = group;
  const lines = [`group ${number} of level ${level}: head${heads.length > 1 ? "s" : ""} ` +
                 heads.join(", ")];
  if (window) lines.push(`${window} tokens` + (cut ? ", cut to the group above's" : ""));
  features.forEach((value, i) => lines.push(`${data.features[i]} ${value}`));
  return lines.join("<br>");
}

function treeData(groups, scale) {
  const grey = "#c3cad2";
  const nodes = [], links = [], place = new Map();
  const shade = (window, alpha) => window ? windowColour(window, scale, alpha) : grey;
  const add = (key, node) => { place.set(key, nodes.length); nodes.push(node); };
  for (const group of groups) {
    const [level, number, , heads, window] = group;
    add(groupKey(level, number), {label: window ? window + " tokens" : "group " + number,
                                  colour: shade(window, 1), hover: groupHover(group)});
    if (level > 0) continue;
    for (const head of heads) {
      add("head" + head, {label: "head " + head, colour: shade(window, 1), hover: "head " + head});
    }
  }
  for (const [level, number, parent, heads, window] of groups) {
    const target = place.get(groupKey(level, number));
    if (level === 0) {
      for (const head of heads) {
        links.push({source: place.get("head" + head), target, value: 1, colour: shade(window, 0.35)});
      }
    }
    if (parent >= 0) {
      links.push({source: target, target: place.get(groupKey(level + 1, parent)),
                  value: heads.length, colour: shade(window, 0.35)});
    }
  }
  return {nodes, links};
}

function drawTree() {
  const grouping = tree.run.windows.groupings[tree.index];
  const groups = grouping.layers[tree.layer];
  byId("tree_step").textContent = "step " + grouping.step.toLocaleString("en-US");
  const {nodes, links} = treeData(groups, logScale(allWindows()));
  const levels = groups.length ? Math.max(...groups.map((group) => group[0])) + 1 : 0;
  const trace = {
    type: "sankey", arrangement: "snap",
    node: {label: nodes.map((n) => n.label), color: nodes.map((n) => n.colour),
           customdata: nodes.map((n) => n.hover), pad: 10, thickness: 16,
           line: {color: "#8793a1", width: 0.5}, hovertemplate: "%{customdata}<extra></extra>"},
    link: {source: links.map((l) => l.source), target: links.map((l) => l.target),
           value: links.map((l) => l.value), color: links.map((l) => l.colour), hoverinfo: "skip"},
  };
  const titles = ["heads"].concat(
      Array.from({length: levels}, (_, level) => (level === 0 ? "groups, level " : "level ") + level));
  const annotations = titles.map((text, i) => ({
    text, x: titles.length > 1 ? i / (titles.length - 1) : 0, y: 1.02, xref: "paper", yref: "paper",
    xanchor: i === 0 ? "left" : i === titles.length - 1 ? "right" : "center", yanchor: "bottom",
    showarrow: false, font: {color: "#5a6675"},
  }));
  Plotly.react("tree", [trace], {
    height: 90 + Math.max(200, 24 * tree.run.windows.heads), margin: {l: 10, r: 10, t: 40, b: 20},
    font: {size: 12}, annotations,
  }, {displayModeBar: false, responsive: true});
}

function chooseTreeRun(run) {
  tree.run = run;
  const layers = byId("tree_layer");
  layers.replaceChildren();
  for (let layer = 0; layer < run.windows.layers; ++layer) {
    element("option", layers, "layer " + layer).value = layer;
  }
  tree.layer = Math.min(tree.layer, run.windows.layers - 1);
  layers.value = tree.layer;
  const slider = byId("tree_slider");
  tree.index = slider.max = run.windows.groupings.length - 1;
  slider.value = tree.index;
  slider.style.visibility = tree.index > 0 ? "visible" : "hidden";
  const shown = run.windows.groupings.length, all = run.windows.all_groupings;
  byId("tree_note").textContent = shown < all
      ? `${shown} of the run's ${all.toLocaleString("en-US")} groupings are in this page.` : "";
  drawTree();
}

function addTree() {
  const grouped = runs.filter((run) => run.windows.groupings.length > 0);
  if (!grouped.length) {
    byId("tree_box").style.display = "none";
    byId("tree_none").textContent = "No run here has a controller that groups heads: there is no " +
        "hierarchy to show.";
    return;
  }
  const choice = byId("tree_run");
  grouped.forEach((run, index) => { element("option", choice, run.name).value = index; });
  choice.onchange = () => chooseTreeRun(grouped[Number(choice.value)]);
  byId("tree_layer").onchange = () => { tree.layer = Number(byId("tree_layer").value); drawTree(); };
  byId("tree_slider").oninput = () => {
    tree.index = Number(byId("tree_slider").value);
    drawTree();
  };
  chooseTreeRun(grouped[0]);
}
