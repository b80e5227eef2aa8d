// A request of the page as code for other programs.

import { el } from "./elements.js";
import { t } from "./strings.js";

function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value === null) return "None";
  if (typeof value === "object") return `{${Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`).join(", ")}}`;
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value); // texts of JSON are texts of Python
}

/**
 * The request as a command of curl and as a program in Python.
 * @param {string} path @param {object} body @param {boolean} isKeyed @returns {[language: string, code: string][]}
 */
export function codeOf(path, body, isKeyed) {
  const url = new URL(path, location.href).href;
  const headers = { "Content-Type": "application/json", ...(isKeyed ? { Authorization: "Bearer KEY" } : {}) };
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const curl = ["curl", url, ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`), `-d ${quoted(JSON.stringify(body))}`];
  return [
    ["curl", curl.join(" \\\n  ")],
    ["Python", `import json
import urllib.request

body = ${python(body)}
request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(), ${python(headers)})
print(json.load(urllib.request.urlopen(request)))`],
  ];
}

/**
 * A button that shows a request as code; `request` returns its path and body, or nothing.
 * @param {() => [path: string, body: object] | undefined} request @param {boolean} isKeyed
 */
export function codeButton(request, isKeyed) {
  return el("button", { type: "button", onclick: () => {
    const found = request();
    if (!found) return;
    const dialog = el("dialog", { class: "code", "aria-label": t("code"), onclose: () => dialog.remove() },
      el("h2", {}, t("code")),
      codeOf(...found, isKeyed).flatMap(([name, text]) => [
        el("p", { class: "buttons" }, el("b", {}, name), el("button", { onclick: (event) => copied(event.target, text) }, t("copy"))),
        el("pre", { tabindex: "0" }, text),
      ]),
      el("button", { onclick: () => dialog.close() }, t("close")));
    document.body.append(dialog);
    dialog.showModal();
  } }, t("showCode"));
}

/** @param {HTMLElement} button @param {string} text */
async function copied(button, text) {
  await copy(text);
  button.textContent = t("copied");
}

/** @param {string} text */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const node = el("pre", {}, text); // pages at http://… of another machine have no clipboard
  (document.querySelector("dialog[open]") ?? document.body).append(node);
  getSelection().selectAllChildren(node);
  document.execCommand("copy");
  getSelection().removeAllRanges();
  node.remove();
}
