// The inspection of a text by a model, in a dialog.

import { post } from "./api.js";
import { el } from "./elements.js";
import { t } from "./strings.js";

/**
 * A button that shows the inspection of a text.
 * @param {() => string} model @param {() => string} text @param {Say} onError
 */
export function inspectButton(model, text, onError = alert) {
  return el("button", { type: "button", onclick: () => inspect(model(), () => ({ text: text() }), onError) }, t("inspect"));
}

/**
 * Show the inspection of what a function returns: a text, and the domain of the model.
 * @param {string} model @param {() => GivenText} shown @param {Say} onError
 * @param {InsideBegin} [_begin] of a page with its model
 */
export async function inspect(model, shown, onError, _begin) {
  const { text, tag = "" } = shown();
  if (!model || !text.trim()) return;
  try {
    const { url } = await post(`/models/${model}/inspect`, { inputs: text.trim(), parameters: { tag } });
    const dialog = el("dialog", { class: "wide", "aria-label": t("inspectTitle"), onclose: () => dialog.remove() },
      el("p", { class: "buttons" }, el("button", { onclick: () => dialog.close() }, t("close"))),
      el("iframe", { src: url, title: t("inspectTitle") }));
    document.body.append(dialog);
    dialog.showModal();
  } catch (error) {
    onError(error.message);
  }
}
