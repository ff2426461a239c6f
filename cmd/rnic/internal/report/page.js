const q = document.getElementById('q'), show = document.getElementById('show'), boxes = [...document.querySelectorAll('#v input')];
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
    document.querySelector('nav a[href="#' + s.id + '"]').classList.toggle('hidden', !any && !all);
  }
  for (const h of document.querySelectorAll('nav h2')) {
    let a = h.nextElementSibling;
    while (a && a.matches('.hidden')) a = a.nextElementSibling;
    h.classList.toggle('hidden', !a || !a.matches('.s'));
  }
  if (show) show.checked = on.has('skip');
}
function reveal() {
  const e = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (e && e.closest('.hidden')) {
    q.value = '';
    boxes.forEach(b => b.checked = true);
    filter();
  }
  for (let d = e && e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
  if (e) e.scrollIntoView();
}
q.addEventListener('input', filter);
boxes.forEach(b => b.addEventListener('change', filter));
if (show) show.addEventListener('change', () => {
  boxes.find(b => b.value == 'skip').checked = show.checked;
  filter();
});
addEventListener('hashchange', reveal);
filter();
if (location.hash) reveal();
