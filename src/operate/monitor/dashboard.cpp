// The page: polls /metrics.json every second and plots the result.
#include "operate/monitor/dashboard.h"

namespace capibara {

const char dashboard_page[] = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>capibara monitor</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
body { font: 15px system-ui, sans-serif; margin: 16px; max-width: 1400px; }
h1 { font-size: 18px; margin: 0 0 12px; }
button { font: inherit; font-size: 14px; } #captured { font-size: 14px; font-weight: 400; overflow-wrap: anywhere; }
#alerts { color: #b00020; font-weight: 600; min-height: 1.3em; }
#cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 12px; }
.card { border: 1px solid #8884; border-radius: 8px; padding: 10px; overflow: hidden; }
.name { opacity: .75; font-size: 13px; } .value { font-size: 22px; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: 48px; display: block; }
polyline { fill: none; stroke: #3367d6; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
</style></head><body>
<h1>capibara <span id="state"></span> <button id="capture" hidden>Take a profile</button>
<span id="captured" role="status"></span></h1><div id="alerts" role="status"></div><div id="cards"></div>
<script>
const history = {}, cards = {}, most = 300;
function card(name, doc) {
  const box = document.createElement("div"); box.className = "card"; box.title = doc;
  box.innerHTML = '<div class="name"></div><div class="value"></div>' +
    '<svg viewBox="0 0 300 48" preserveAspectRatio="none"><polyline/></svg>';
  box.querySelector(".name").textContent = name.replaceAll("_", " ");
  document.getElementById("cards").append(box);
  return box;
}
function shown(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 100 ? value.toFixed(1) : value.toPrecision(4);
}
function draw(line, values) {
  const finite = values.filter(Number.isFinite), low = Math.min(...finite), range = Math.max(...finite) - low || 1;
  const step = 300 / Math.max(values.length - 1, 30);
  const point = (v, i) => Number.isFinite(v) ? `${i * step},${45 - 42 * (v - low) / range}` : "";
  line.setAttribute("points", values.map(point).join(" "));
}
async function update() {
  try {
    const answer = await (await fetch("metrics.json")).json();
    for (const {name, doc, value} of answer.metrics) {
      cards[name] ??= card(name, doc); history[name] ??= [];
      history[name].push(value); if (history[name].length > most) history[name].shift();
      cards[name].querySelector(".value").textContent = shown(value);
      draw(cards[name].querySelector("polyline"), history[name]);
    }
    document.getElementById("alerts").textContent = answer.alerts.join(" · ");
    document.getElementById("state").textContent = ""; button.hidden = !answer.capture;
  } catch (error) { document.getElementById("state").textContent = "no answer"; }
}
// The token comes behind '#', which browsers do not send, and leaves the address bar; without one the page requests it.
const button = document.getElementById("capture"), captured = document.getElementById("captured");
function take_token() {
  if (location.hash.length < 2) return;
  sessionStorage.setItem("token", location.hash.slice(1));
  window.history.replaceState(null, "", location.pathname);
}
take_token(); addEventListener("hashchange", take_token);
function token() {
  const known = sessionStorage.getItem("token");
  if (known) return known;
  const given = prompt(`The token of this monitor: 'capibara top ${location.port} --link' prints it behind #`);
  const text = (given ?? "").split("#").pop().trim();
  if (text) sessionStorage.setItem("token", text);
  return text;
}
button.onclick = async () => {
  const secret = token();
  if (!secret) return;
  button.disabled = true; captured.textContent = "taking a profile ...";
  try {
    const answer = await fetch("capture", {method: "POST", headers: {"X-Capibara-Token": secret}});
    if (answer.status === 403) sessionStorage.removeItem("token");
    const said = await answer.json();
    captured.textContent = said.profile ?? said.error;
  } catch (error) { captured.textContent = "no answer"; }
  button.disabled = false;
};
update(); setInterval(update, 1000);
</script></body></html>
)html";

}  // namespace capibara
