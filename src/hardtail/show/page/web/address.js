// The part of the address after # says what is shown, `#theatre?stage=0&a=…`, so a link reproduces the view.

const LATER = 200; // browsers refuse a page that rewrites its address many times a second
let pending = 0;

export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, query: new URLSearchParams(query) };
}

export function addressOf(view, entries) {
  const query = new URLSearchParams(Object.entries(entries).filter(([, value]) => value !== "" && value !== null));
  const text = query.toString();
  return text ? `#${view}?${text}` : `#${view}`;
}

// Rewrite the address in place and a little later, so that stepping through a trace does not fill the history.
export function noteAddress(view, entries) {
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", addressOf(view, entries)), LATER);
}

export function forgetAddress() {
  clearTimeout(pending);
}
