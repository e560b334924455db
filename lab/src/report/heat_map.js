"use strict";
// ---- Heat maps of layers x heads, and sliders through steps ----
// Shared with the main script: colour, byId, element.

const viridis = [[253, 231, 37], [144, 215, 67], [53, 183, 121], [33, 145, 140], [49, 104, 142],
                 [68, 57, 131], [68, 1, 84]];  // small windows light, large ones dark

// From the least to the most of some windows, as powers of 2.
function logScale(windows) {
  const most = Math.max(...windows), least = Math.min(...windows, most / 2);
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

// What tells cells of windows apart by colour; `scale` of logScale.
function windowShades(scale) {
  const ticks = [];
  const stride = Math.max(1, Math.round((scale.high - scale.low) / 4));
  for (let power = Math.floor(scale.high); power >= scale.low; power -= stride) ticks.push(power);
  return {
    place: Math.log2, low: scale.low, high: scale.high, colours: plotlyScale(viridis),
    bar: {tickvals: ticks, ticktext: ticks.map((p) => String(2 ** p)), thickness: 12,
          title: {text: "window", side: "right"}},
  };
}

// Draws `values`, [layers][heads], into `box`. `map`: title and its colour, shades (of windowShades
// or alike), hover (a template), showBar, `marked` {layer, head} for a frame around a cell, width
// (most pixels).
function drawHeatMap(box, values, map) {
  const layers = values.length, heads = values[0].length;
  const space = (map.showBar ? 90 : 10) + 50;
  const cell = Math.max(map.width < 500 ? 12 : 20,
                        Math.min(44, 380 / heads, ((map.width || 1e4) - space) / heads));
  const shades = map.shades;
  const trace = {
    type: "heatmap", z: values.map((row) => row.map(shades.place)), text: values,
    texttemplate: cell >= 28 ? "%{text}" : "", textfont: {size: 10}, xgap: 1, ygap: 1,
    zmin: shades.low, zmax: shades.high, colorscale: shades.colours, showscale: map.showBar,
    colorbar: shades.bar, hovertemplate: map.hover + "<extra></extra>",
  };
  const marked = map.marked;
  const layout = {
    title: {text: map.title, font: {size: 14, color: map.titleColour}, x: 0.02},
    width: Math.max(150, space + cell * heads),
    height: 90 + Math.max(cell * 0.8 * layers, 60),
    margin: {l: 50, r: map.showBar ? 90 : 10, t: 34, b: 44},
    xaxis: {title: {text: "head"}, dtick: heads > 16 ? 4 : 1, zeroline: false, showgrid: false},
    yaxis: {title: {text: "layer"}, dtick: layers > 16 ? 4 : 1, autorange: "reversed",
            zeroline: false, showgrid: false},
    font: {size: 12},
    shapes: !marked ? [] : [{
      type: "rect", x0: marked.head - 0.5, x1: marked.head + 0.5, y0: marked.layer - 0.5,
      y1: marked.layer + 0.5, line: {color: "#d9541e", width: 2.5},
    }],
  };
  Plotly.react(box, [trace], layout, {displayModeBar: false});
}

// Pixels that a page leaves for a plot.
const pageWidth = () => byId("title").clientWidth;

// A slider over steps with a button that plays them. The page has for `prefix` the elements
// PREFIX_slider, PREFIX_step (the step in words), PREFIX_play and PREFIX_steps (all of these).
class StepSlider {
  constructor(prefix, draw) {
    this.prefix = prefix;
    this.draw = draw;  // called with nothing when the index is another one
    this.timer = null;
    this.setSteps([]);
    this.part("slider").oninput = () => {
      this.stop();
      this.index = Number(this.part("slider").value);
      this.show();
    };
    this.part("play").onclick = () => this.timer ? this.stop() : this.play();
  }

  part(name) { return byId(this.prefix + "_" + name); }

  setSteps(steps) {
    this.stop();
    this.steps = steps;
    this.index = Math.max(0, steps.length - 1);
    this.part("slider").max = this.index;
    this.part("steps").style.display = steps.length > 1 ? "flex" : "none";
  }

  show() {
    this.part("step").textContent = this.steps.length
        ? "step " + this.steps[this.index].toLocaleString("en-US") : "no step logged";
    this.part("slider").value = this.index;
    this.draw();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.part("play").textContent = "play";
  }

  play() {
    if (this.index === this.steps.length - 1) this.index = 0;
    this.part("play").textContent = "stop";
    this.timer = setInterval(() => {
      if (this.index === this.steps.length - 1) return this.stop();
      ++this.index;
      this.show();
    }, Math.max(60, Math.min(400, 12000 / this.steps.length)));
  }
}

// Buttons of which one is on; `choices` are pairs of a name and a label.
function addChoice(parent, choices, choose) {
  for (const [name, label] of choices) {
    const button = element("button", parent, label);
    button.dataset.choice = name;
    button.onclick = () => choose(name);
  }
}

function markChoice(parent, name) {
  for (const button of parent.children) {
    button.className = button.dataset.choice === name ? "on" : "";
  }
}
