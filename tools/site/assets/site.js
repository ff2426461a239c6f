"use strict";
const root = document.currentScript.dataset.root;
const html = document.documentElement, q = document.getElementById("q"), results = document.getElementById("results");

document.getElementById("theme").addEventListener("click", () => {
  const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  html.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", html.dataset.theme); } catch { /* then it holds for this page */ }
});

const menu = document.querySelector(".menu");
if (menu) menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", document.getElementById("side").classList.toggle("open"));
});

for (const h of document.querySelectorAll("main :is(h2, h3, h4)[id]")) {
  const a = document.createElement("a");
  a.className = "anchor"; a.href = "#" + h.id; a.textContent = "#"; a.setAttribute("aria-label", "Link to this heading");
  h.append(a);
}
if (navigator.clipboard) for (const pre of document.querySelectorAll("main pre")) {
  const box = document.createElement("div"), b = document.createElement("button");
  box.className = "code"; b.type = "button"; b.textContent = "Copy";
  b.addEventListener("click", async () => {
    await navigator.clipboard.writeText(pre.textContent.trimEnd());
    b.textContent = "Copied";
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  });
  pre.replaceWith(box); box.append(pre, b);
}

// The index is a script: a page that was opened as a file may fetch nothing.
let loading;
const load = () => loading ||= new Promise((done, failed) => {
  const s = document.createElement("script");
  s.src = root + "search.js"; s.onload = done; s.onerror = failed;
  document.head.append(s);
});

// score is 0 for a row that lacks a term. A row is page, name in it, title of the page, heading, text.
function score([, , title, heading, text], terms) {
  title = title.toLowerCase(); heading = heading.toLowerCase(); text = text.toLowerCase();
  let sum = 0;
  for (const t of terms) {
    let s = 0;
    if (heading.includes(t)) s += heading.split(/[^\p{L}\p{N}_]+/u).includes(t) ? 24 : 12;
    if (title.includes(t)) s += 8;
    const at = text.indexOf(t);
    if (at >= 0) s += 2 + Math.min(4, text.split(t).length - 1);
    if (!s) return 0;
    sum += s;
  }
  return sum;
}

// marked puts text into an element, with the terms marked.
function marked(element, text, terms) {
  const escaped = terms.map(t => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  for (const [i, piece] of text.split(new RegExp("(" + escaped.join("|") + ")", "i")).entries()) {
    if (i % 2) { const m = document.createElement("mark"); m.textContent = piece; element.append(m); } else element.append(piece);
  }
}

function around(text, terms) {
  const at = Math.max(0, Math.min(...terms.map(t => text.toLowerCase().indexOf(t)).filter(i => i >= 0), text.length) - 50);
  return (at ? "… " : "") + text.slice(at, at + 160) + (at + 160 < text.length ? " …" : "");
}

async function find() {
  const terms = q.value.toLowerCase().split(/\s+/).filter(t => t.length > 1);
  if (!terms.length) { results.hidden = true; results.replaceChildren(); return; }
  await load();
  const found = window.searchIndex.map(row => [score(row, terms), row]).filter(f => f[0]).sort((a, b) => b[0] - a[0]).slice(0, 20);
  results.replaceChildren(...found.map(([, [page, id, title, heading, text]]) => {
    const li = document.createElement("li"), a = document.createElement("a"), small = document.createElement("small");
    a.href = root + page + (id ? "#" + id : "");
    marked(a, heading === title || !heading ? title : title + ": " + heading, terms);
    const said = around(text, terms);
    if (terms.some(t => said.toLowerCase().includes(t))) marked(small, said, terms);
    a.append(small); li.append(a);
    return li;
  }));
  if (!found.length) {
    const li = document.createElement("li");
    li.className = "none"; li.textContent = "Nothing has all of these words.";
    results.append(li);
  }
  results.hidden = false;
}
q.addEventListener("focus", load);
q.addEventListener("input", find);
addEventListener("keydown", e => {
  if (e.key === "/" && !/^(input|textarea|select)$/i.test(document.activeElement.tagName)) { e.preventDefault(); q.focus(); }
  if (e.key === "Escape") { results.hidden = true; q.blur(); }
  if ((e.key === "ArrowDown" || e.key === "ArrowUp") && !results.hidden) {
    const links = [...results.querySelectorAll("a")], now = links.indexOf(document.activeElement);
    const next = links[now + (e.key === "ArrowDown" ? 1 : -1)];
    if (next) { e.preventDefault(); next.focus(); } else if (now === 0) { e.preventDefault(); q.focus(); }
  }
  if (e.key === "Enter" && document.activeElement === q) results.querySelector("a")?.click();
});
addEventListener("click", e => { if (!e.target.closest(".find")) results.hidden = true; });
