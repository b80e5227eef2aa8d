// Elements of a page. Text is only ever inserted as text, never as HTML.

/**
 * Create an element. String children become text; attributes that start with "on" become event listeners.
 * @template {keyof HTMLElementTagNameMap} K @param {K} name @param {Record<string, any>} attributes
 * @param {...(Child | Child[])} children @returns {HTMLElementTagNameMap[K]}
 */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, x] of Object.entries(value)) node.style.setProperty(name, x);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false && child !== "") node.append(child);
  return node;
}
