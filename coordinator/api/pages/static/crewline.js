// Keeps what is on the page fresh: asks for the changing parts when something happened, and swaps those that differ.
// A part with a form that somebody is filling in is left alone.
"use strict";

const SHORTEST_MS = 400;
const STALE_MS = 5000;

function isBusy(part) {
  const active = document.activeElement;
  const typing = part.contains(active) && active.matches("input, textarea, select");
  return typing || part.querySelector("form[data-dirty]") !== null;
}

function keep(old, fresh) {
  for (const details of old.querySelectorAll("details[data-key][open]")) {
    const same = fresh.querySelector(`details[data-key="${CSS.escape(details.dataset.key)}"]`);
    if (same) same.open = true;
  }
}

function swap(old, fresh) {
  if (isBusy(old)) return;
  keep(old, fresh);
  if (old.innerHTML === fresh.innerHTML) return;
  const scrolled = new Map();
  for (const box of old.querySelectorAll(".scroll[data-key]")) {
    scrolled.set(box.dataset.key, [box.scrollLeft, box === document.activeElement]);
  }
  const link = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  old.replaceWith(fresh);
  for (const box of fresh.querySelectorAll(".scroll[data-key]")) {
    const [left, focused] = scrolled.get(box.dataset.key) || [0, false];
    box.scrollLeft = left;
    if (focused) box.focus({ preventScroll: true });
  }
  if (link) fresh.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
}

function announce(status) {
  const place = document.getElementById("announce");
  const text = `Status: ${status.replaceAll("_", " ")}`;
  if (place.textContent !== text) place.textContent = text;
}

async function refresh(region) {
  const answer = await fetch(region.dataset.part, { headers: { Accept: "text/html" } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const fresh of page.querySelectorAll("section[id]")) {
    const old = document.getElementById(fresh.id);
    if (old) swap(old, fresh);
  }
  const status = document.querySelector("[data-status]");
  if (status) announce(status.dataset.status);
}

// Asks at most once in a while, never twice at a time, and waits longer where the answer takes long.
function refresher(region) {
  let running = false;
  let again = false;
  return async function ask() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    const began = performance.now();
    try {
      await refresh(region);
    } catch {
      // The server is away; the stream or the next round asks again.
    }
    const pause = Math.max(SHORTEST_MS, 3 * (performance.now() - began));
    setTimeout(() => {
      running = false;
      if (again) {
        again = false;
        ask();
      }
    }, pause);
  };
}

function follow(region) {
  const ask = refresher(region);
  const source = new EventSource(region.dataset.stream);
  source.addEventListener("message", ask);
  source.addEventListener("open", () => region.classList.add("live"));
  source.addEventListener("error", () => region.classList.remove("live"));
  const clock = setInterval(() => document.hidden || ask(), STALE_MS);
  source.addEventListener("end", () => {
    source.close();
    clearInterval(clock);
    region.classList.remove("live");
    ask();
  });
}

for (const region of document.querySelectorAll("[data-part]")) {
  if (region.dataset.stream) {
    follow(region);
  } else if (region.dataset.every) {
    const ask = refresher(region);
    setInterval(() => document.hidden || ask(), Number(region.dataset.every));
  }
}

document.addEventListener("input", (event) => event.target.closest("form")?.setAttribute("data-dirty", ""));
