const q = document.getElementById('q'), boxes = [...document.querySelectorAll('#v input')];
function filter() {
  const words = q.value.toLowerCase().split(/\s+/).filter(w => w);
  const on = new Set(boxes.filter(b => b.checked).map(b => b.value));
  const all = words.length == 0 && on.size == boxes.length;
  for (const s of document.querySelectorAll('.section')) {
    const where = s.querySelector('h2').firstChild.data.toLowerCase();
    let any = false;
    for (const e of s.querySelectorAll('[data-v]')) {
      const text = where + ' ' + (e.querySelector('summary,td:nth-child(3)').textContent + ' ' + e.id).toLowerCase();
      const hit = on.has(e.dataset.v) && words.every(w => text.includes(w));
      e.classList.toggle('hidden', !hit);
      any ||= hit;
    }
    s.classList.toggle('hidden', !any && !all);
  }
}
function reveal() {
  const e = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let d = e && e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
  if (e) e.scrollIntoView();
}
q.addEventListener('input', filter);
boxes.forEach(b => b.addEventListener('change', filter));
addEventListener('hashchange', reveal);
filter();
if (location.hash) reveal();
