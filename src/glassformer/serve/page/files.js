// Translation of files: chosen, or dropped on the page.

import { IS_LOCAL, translateFile } from "./api.js";
import { choice } from "./choices.js";
import { el } from "./elements.js";
import { showStatus } from "./status.js";
import { t } from "./strings.js";

const MAX_BYTES = 4 << 20; // the server closes the connection of a larger one

/**
 * The list of files.
 * @param {Settings} settings
 * @param {(file: File) => Promise<Record<string, string>>} options function of a file that returns a promise of the
 *   fields of its request
 * @param {() => void} opened called when files were dropped on the page
 */
export function fileTranslation(settings, options, opened) {
  const formats = settings.supportedFilesFormat;
  const input = el("input", { type: "file", id: "file", multiple: true, accept: formats.join(","), onchange: () => { add(input.files); input.value = ""; } });
  const to = choice(t("result"), [["", t("sameFormat")], ["xliff", t("forReview")], ["tmx", t("asMemory")]], { id: "to" });
  const list = el("ul", { class: "files", "aria-live": "polite" });
  const node = el("div", { class: "panel" }, el("p", {}, el("label", { for: "file" }, t("fileHelp", formats.join(", ")))), input, IS_LOCAL ? "" : to, list);
  let last = Promise.resolve(); // one file at a time, in their order

  /** @param {Iterable<File>} files */
  function add(files) {
    for (const file of files) {
      const status = el("span", { class: "status" }, t("waiting"));
      const bar = el("progress", { "aria-label": file.name });
      const controller = new AbortController();
      const actions = el("span", { class: "actions" });
      const row = el("li", {}, el("b", {}, file.name), bar, status, actions);
      const remove = (text) => el("button", { "aria-label": `${text}: ${file.name}`, onclick: () => { controller.abort(); row.remove(); } }, text);
      actions.append(remove(t("cancel")));
      list.append(row);
      /** @type {Say} */
      const say = (...message) => showStatus(status, ...message);
      const wanted = fieldsOf(file); // as they are now
      wanted.catch(() => {}); // shown in its turn
      last = last.then(async () => {
        try {
          const { href, name, notes = [] } = await translated(file, wanted, bar, say, controller.signal);
          say([t("translated"), ...notes].join(". "));
          actions.replaceChildren(el("a", { href, download: name }, t("download", file.name)), remove(t("remove")));
        } catch (error) {
          if (controller.signal.aborted) return;
          say(error.message, true);
          actions.replaceChildren(el("button", { onclick: () => { row.remove(); add([file]); } }, t("tryAgain")), remove(t("remove")));
        }
        bar.remove();
      });
    }
  }

  /** @param {File} file */
  async function fieldsOf(file) {
    const { value } = to.querySelector("select");
    return { ...(await options(file)), to: value };
  }

  /**
   * @param {File} file @param {Promise<Record<string, string>>} wanted @param {HTMLProgressElement} bar @param {Say} say
   * @param {AbortSignal} signal
   */
  async function translated(file, wanted, bar, say, signal) {
    signal.throwIfAborted();
    if (file.size > MAX_BYTES) throw new Error(t("tooLarge"));
    const fields = await wanted;
    /** @param {number} done @param {number} total */
    const progress = (done, total) => {
      if (!bar.isConnected) return;
      bar.max = total;
      bar.value = done;
      say(t("sentences", done.toLocaleString(), total.toLocaleString()));
    };
    return translateFile(file, fields, { progress, say, signal });
  }

  const highlight = (on) => node.closest("section").classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    highlight(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || highlight(false));
  document.addEventListener("drop", (event) => {
    const { files } = event.dataTransfer;
    if (!files.length) return;
    event.preventDefault();
    highlight(false);
    if (node.closest("section").hidden) return;
    opened();
    add(files);
  });
  return node;
}
