// What a page looks like, for browser_test.go: {links, ids, broken, wide, faint}.
(() => {
  const out = {links: [], ids: [], broken: [], wide: "", faint: []};
  for (const a of document.querySelectorAll("a[href]")) out.links.push(a.href);
  for (const e of document.querySelectorAll("[id]")) out.ids.push(e.id);
  for (const i of document.images) if (!i.complete || !i.naturalWidth) out.broken.push(i.src);

  const view = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > view) {
    const scrolls = e => e && e !== document.body && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
    const worst = [...document.querySelectorAll("body *")].find(e => e.getBoundingClientRect().right > view + 1 && !scrolls(e.parentElement));
    out.wide = document.documentElement.scrollWidth + " of " + view + ", " + (worst ? worst.outerHTML.slice(0, 120) : "?");
  }

  // The contrast of text, as WCAG 2 counts it: 4.5 for text, 3 for large text. A canvas knows every notation of a colour.
  const ink = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true}), known = new Map();
  const rgba = c => {
    if (!known.has(c)) {
      ink.clearRect(0, 0, 1, 1); ink.fillStyle = c; ink.fillRect(0, 0, 1, 1);
      const d = ink.getImageData(0, 0, 1, 1).data;
      known.set(c, [d[0], d[1], d[2], d[3] / 255]);
    }
    return known.get(c);
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const canvas = rgba(matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "#121212" : "#fff");
  const grounds = new Map();
  const ground = e => {
    if (!e) return canvas;
    if (!grounds.has(e)) grounds.set(e, over(rgba(getComputedStyle(e).backgroundColor), ground(e.parentElement)));
    return grounds.get(e);
  };
  const light = c => {
    const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const said = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (!text || /^(script|style|option|noscript)$/i.test(e.tagName) || !e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    const s = getComputedStyle(e);
    let see = 1;
    for (let p = e; p; p = p.parentElement) see *= getComputedStyle(p).opacity;
    const svg = e instanceof SVGElement, colour = rgba(svg ? s.fill : s.color), below = ground(e);
    const [a, b] = [light(over([...colour.slice(0, 3), colour[3] * see], below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && s.fontWeight >= 700;
    if (ratio >= (large ? 3 : 4.5)) continue;
    const kind = e.tagName + "." + (svg ? e.getAttribute("class") : e.className) + s.color;
    if (said.has(kind)) continue; // one of a kind is enough
    said.add(kind);
    out.faint.push("contrast " + ratio.toFixed(2) + " of <" + e.tagName.toLowerCase() + (svg || !e.className ? "" : " class=" + e.className) + "> " + text.slice(0, 40));
  }
  return out;
})()
