// The page is whole without this script. It keeps the view up to date, counts down, fetches
// older attempts while one scrolls, and takes keys. It makes no HTML of texts: what it
// shows is a view of the server, parsed as a document.
"use strict";

const $ = (id) => document.getElementById(id);
const parse = (text) => new DOMParser().parseFromString(text, "text/html");

// View: the current URL is fetched and what differs is changed, so that focus, scrolling
// and what is open stay.
let paused = false, fetching = false, stale = false, version = "", streamed = false;

// held reports that a reader has scrolled into older attempts, which do not move any more.
const held = () => $("view").dataset.scrolled === "true";

function say(text, kind) {
  const state = $("state");
  if (state && (state.textContent !== text || !state.classList.contains(kind))) {
    state.textContent = text;
    state.className = "badge " + kind;
  }
}

function sync(old, now) {
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !(old.tagName === "DETAILS" && name === "open")) old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) return old.replaceWith(now);
  if (old.nodeType !== Node.ELEMENT_NODE) { if (old.data !== now.data) old.data = now.data; return; }
  if (old === document.activeElement && old.tagName === "INPUT") return;
  sync(old, now);
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const child of [...now.childNodes]) {
    const key = child.nodeType === Node.ELEMENT_NODE && child.dataset.key;
    const same = key ? keyed.get(key) : at && !(at.dataset && at.dataset.key) ? at : null;
    if (!same) { old.insertBefore(child, at); continue; }
    if (same !== at) old.insertBefore(same, at); else at = at.nextSibling;
    morph(same, child);
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

async function refresh() {
  if (held()) return;
  if (fetching) { stale = true; return; }
  fetching = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status === 401) return say("Started anew: open the URL that it printed", "lost");
    const page = parse(await answer.text());
    const now = page.getElementById("view");
    if (now && !paused && !held()) {
      const focus = document.activeElement;
      morph($("view"), now);
      if (focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true }); // it was moved
      document.title = page.title;
      count();
    }
  } catch {
    say("The operator does not answer; what is shown is the last that it said", "lost");
  } finally {
    fetching = false;
    if (stale) { stale = false; refresh(); }
  }
}

// Stream: says when to look. A proxy that gathers it, or a laptop that slept, is noticed
// by the silence, and the view is asked for now and then. A tab that is hidden has none:
// browsers open few connections to a host.
let stream = null;

function follow() {
  if (stream || document.hidden) return;
  stream = new EventSource("/stream");
  stream.addEventListener("changed", (e) => {
    streamed = true;
    if (paused || held()) return;
    say("Live", "live");
    if (e.data !== version) { version = e.data; refresh(); }
  });
  stream.addEventListener("ended", () => { stream.close(); location.reload(); }); // the page says why
  stream.addEventListener("error", () => {
    if (!paused) say("Not connected; trying again", "lost");
    if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again
    stream = null; // it was refused: the view says why, and the stream is asked for again with it
    refresh();
  });
}

function hide() {
  if (document.hidden && stream) { stream.close(); stream = null; }
  if (document.hidden) return;
  follow();
  if (!paused) refresh();
}

function pause() {
  const button = $("pause");
  if (!button) return;
  paused = !paused;
  button.setAttribute("aria-pressed", String(paused));
  say(paused ? "Paused" : "Live", paused ? "paused" : "live");
  if (!paused) refresh();
}

// Countdowns.
function brief(ms) {
  const s = Math.ceil(ms / 1000);
  if (s < 60) return s + "s";
  const two = (n) => String(n).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + "m" + two(s % 60) + "s" : Math.floor(s / 3600) + "h" + two(Math.floor(s / 60) % 60) + "m";
}

function count() {
  if (paused) return;
  for (const time of document.querySelectorAll("[data-due]")) {
    const left = Number(time.dataset.due) - Date.now();
    const text = left > 0 ? "in " + brief(left) : "now";
    if (time.textContent !== text) time.textContent = text;
  }
}

// Window: older attempts are fetched when the end comes near. A page that is far from what
// is seen gives its rows back and keeps its height, until it comes near again.
function scrolls() {
  const list = $("attempts");
  if (!list || !("IntersectionObserver" in window)) return;
  const table = list.querySelector("table");
  const near = { rootMargin: "1500px 0px" };
  const rows = async (url) => parse(await (await fetch(url)).text());
  const windowed = new IntersectionObserver(async (seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting && target.rows.length > 1 && !target.contains(document.activeElement)) {
        const gap = document.createElement("td");
        gap.colSpan = 9;
        gap.height = target.getBoundingClientRect().height;
        const row = document.createElement("tr");
        row.append(gap);
        target.replaceChildren(row);
        target.dataset.away = "true";
      } else if (isIntersecting && target.dataset.away) {
        delete target.dataset.away;
        try { target.replaceChildren(...(await rows(target.dataset.url)).querySelector("#attempts tbody").rows); } catch { target.dataset.away = "true"; }
      }
    }
  }, near);
  table.tBodies[0].dataset.url = location.href;
  let loading = false;
  const more = new IntersectionObserver(async ([seen]) => {
    const older = $("older");
    if (!older || loading || !seen.isIntersecting) return;
    loading = true;
    $("view").dataset.scrolled = "true";
    say("Held where you read; reload for the newest", "paused");
    if (!windowed.began) { windowed.began = true; windowed.observe(table.tBodies[0]); }
    try {
      const url = older.href, page = await rows(url);
      const body = page.querySelector("#attempts tbody");
      body.dataset.url = url;
      table.append(document.adoptNode(body));
      windowed.observe(body);
      const next = page.getElementById("older");
      if (next) older.href = next.href; else older.remove();
    } finally { loading = false; }
    more.unobserve(older);
    if ($("older")) more.observe(older);
  }, { rootMargin: "600px 0px" });
  // Only who scrolls wants older ones.
  addEventListener("scroll", () => { if ($("older")) more.observe($("older")); }, { once: true, passive: true });
}

// Keys: views, find, pause, and the links of the view one after the other.
function keys(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.tagName === "INPUT") { if (e.key === "Escape") e.target.blur(); return; }
  const tabs = document.querySelectorAll("header nav a");
  if (tabs[Number(e.key) - 1]) return tabs[Number(e.key) - 1].click();
  const links = [...document.querySelectorAll("main a[href]")];
  const at = links.indexOf(document.activeElement);
  switch (e.key) {
    case "p": pause(); break;
    case "/": e.preventDefault(); if ($("find")) $("find").focus(); else location.href = "/objects#find"; break;
    case "j": (links[at + 1] || links[0])?.focus(); break;
    case "k": (links[at - 1] || links.at(-1))?.focus(); break;
  }
}

document.addEventListener("keydown", keys);
if (location.hash === "#find") $("find")?.focus();
if (!$("status").dataset.ended) {
  version = $("status").dataset.version;
  $("pause").hidden = false;
  $("reload").hidden = true;
  $("pause").addEventListener("click", pause);
  setInterval(count, 1000);
  setInterval(() => { follow(); if (!streamed && !paused && !document.hidden) refresh(); streamed = false; }, 20000);
  document.addEventListener("visibilitychange", hide);
  follow();
}
scrolls();
