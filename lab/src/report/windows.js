"use strict";
// ---- Windows: allocated context, heat maps with a slider, the hierarchy of a layer ----
// Shared with the main script: data, runs, colour, dash, byId, element.

const viridis = [[253, 231, 37], [144, 215, 67], [53, 183, 121], [33, 145, 140], [49, 104, 142],
                 [68, 57, 131], [68, 1, 84]];  // small windows light, large ones dark

function logScale() {
  const all = runs.flatMap((run) => run.windows.values);
  const most = Math.max(...all), least = Math.min(...all, most / 2);
  return {low: Math.log2(least), high: Math.log2(most)};
}

function windowColour(window, scale, alpha) {
  const place = (Math.log2(window) - scale.low) / (scale.high - scale.low) * (viridis.length - 1);
  const at = Math.max(0, Math.min(viridis.length - 2, Math.floor(place)));
  const mix = Math.max(0, Math.min(1, place - at));
  const rgb = viridis[at].map((from, i) => Math.round(from + mix * (viridis[at + 1][i] - from)));
  return `rgba(${rgb.join(",")},${alpha})`;
}

const plotlyScale = (colours) =>
    colours.map((c, i) => [i / (colours.length - 1), `rgb(${c.join(",")})`]);

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
    legend: {orientation: "h", y: 1.12}, showlegend: true, plot_bgcolor: "#fff",
  }, {displaylogo: false, responsive: true});
}

// ---- Heat maps ----
const maps = {index: 0, show: "windows", timer: null, boxes: []};

// [layers][heads] of windows after the slider's first index + 1 steps.
function windowsAt(run, index) {
  const {heads, layers, context, states, values} = run.windows;
  const flat = new Array(heads * layers).fill(context);
  for (let i = 0; i <= index && i < states.length; ++i) {
    for (let j = 0; j < states[i].length; j += 2) flat[states[i][j]] = values[states[i][j + 1]];
  }
  return Array.from({length: layers}, (_, layer) => flat.slice(layer * heads, (layer + 1) * heads));
}

function mapTrace(run, last, scale, cell) {
  const changes = maps.show === "changes";
  const values = changes ? run.windows.changes : windowsAt(run, maps.index);
  const mostChanges = Math.max(1, ...runs.flatMap((r) => r.windows.changes.flat()));
  const ticks = [];
  const stride = Math.max(1, Math.round((scale.high - scale.low) / 4));
  for (let power = Math.floor(scale.high); power >= scale.low; power -= stride) ticks.push(power);
  return {
    type: "heatmap", z: changes ? values : values.map((row) => row.map(Math.log2)), text: values,
    texttemplate: cell >= 32 ? "%{text}" : "", textfont: {size: 10}, xgap: 1, ygap: 1,
    zmin: changes ? 0 : scale.low, zmax: changes ? mostChanges : scale.high,
    colorscale: changes ? [[0, "#f3f4f6"], [1, "#b02a50"]] : plotlyScale(viridis),
    showscale: last,
    colorbar: changes ? {thickness: 12, title: {text: "changes"}} :
        {tickvals: ticks, ticktext: ticks.map((p) => String(2 ** p)), thickness: 12,
         title: {text: "window"}},
    hovertemplate: "layer %{y}, head %{x}<br>" +
        (changes ? `%{text} changes in ${run.windows.decisions} decisions` : "%{text} tokens") +
        "<extra></extra>",
  };
}

function drawMaps() {
  const scale = logScale();
  runs.forEach((run, index) => {
    if (!maps.boxes[index]) maps.boxes[index] = element("div", byId("maps"));
    const {heads, layers} = run.windows;
    const cell = Math.max(20, Math.min(44, 380 / heads));
    const last = index === runs.length - 1;
    const layout = {
      title: {text: run.name, font: {size: 14, color: colour(index)}, x: 0.02},
      width: Math.max(150, 60 + cell * heads) + (last ? 80 : 0),
      height: 90 + Math.max(cell * 0.8 * layers, 60),
      margin: {l: 50, r: last ? 90 : 10, t: 34, b: 44},
      xaxis: {title: {text: "head"}, dtick: heads > 16 ? 4 : 1, zeroline: false, showgrid: false},
      yaxis: {title: {text: "layer"}, dtick: layers > 16 ? 4 : 1, autorange: "reversed",
              zeroline: false, showgrid: false},
      font: {size: 12},
    };
    Plotly.react(maps.boxes[index], [mapTrace(run, last, scale, cell)], layout,
                 {displayModeBar: false});
  });
  const steps = data.slider.steps;
  byId("map_step").textContent = steps.length ? "step " + steps[maps.index].toLocaleString("en-US")
                                              : "no step logged";
  byId("map_slider").value = maps.index;
}

function setShown(show) {
  maps.show = show;
  for (const button of byId("map_kind").children) {
    button.className = button.dataset.show === show ? "on" : "";
  }
  byId("map_steps").style.visibility = show === "windows" ? "visible" : "hidden";
  drawMaps();
}

function stopPlaying() {
  clearInterval(maps.timer);
  maps.timer = null;
  byId("map_play").textContent = "play";
}

function playOrStop() {
  if (maps.timer) return stopPlaying();
  const steps = data.slider.steps;
  if (maps.index === steps.length - 1) maps.index = 0;
  byId("map_play").textContent = "stop";
  maps.timer = setInterval(() => {
    if (maps.index === steps.length - 1) return stopPlaying();
    ++maps.index;
    drawMaps();
  }, Math.max(60, Math.min(400, 12000 / steps.length)));
}

function addMaps() {
  const {steps, all} = data.slider;
  maps.index = Math.max(0, steps.length - 1);
  const slider = byId("map_slider");
  slider.max = maps.index;
  slider.oninput = () => {
    stopPlaying();
    maps.index = Number(slider.value);
    drawMaps();
  };
  byId("map_play").onclick = playOrStop;
  byId("map_steps").style.display = steps.length > 1 ? "flex" : "none";
  const changing = runs.some((run) => run.windows.changes.flat().some((count) => count > 0));
  if (changing) {
    for (const [show, label] of [["windows", "windows"], ["changes", "how often they changed"]]) {
      const button = element("button", byId("map_kind"), label);
      button.dataset.show = show;
      button.onclick = () => { stopPlaying(); setShown(show); };
    }
  }
  byId("map_note").textContent = !changing
      ? "No window changed in these runs: nothing decided them, they are as the settings say."
      : steps.length < all
      ? `The slider stops at ${steps.length} of the ${all.toLocaleString("en-US")} steps in which ` +
        "a window changed."
      : "The slider stops at every step in which a window changed.";
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
  const {nodes, links} = treeData(groups, logScale());
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
