// What a tab keeps until it is closed, so that a reload, "back" or another language of the interface loses nothing.

import { session } from "./storage.js";

const values = new Map(); // functions that return what is kept, by name

/**
 * Keep a value, which a function returns, under a name. Returns what was kept before, or null.
 * @param {string} name @param {() => unknown} value @returns {any}
 */
export function kept(name, value) {
  values.set(name, value);
  return JSON.parse(session.get(`kept.${name}`) ?? "null");
}

function store() {
  for (const [name, value] of values) session.set(`kept.${name}`, JSON.stringify(value()));
}

addEventListener("pagehide", store);
document.addEventListener("visibilitychange", () => document.hidden && store()); // a tab in the background may be ended without another event
