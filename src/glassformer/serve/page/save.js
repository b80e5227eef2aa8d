// Files that the page makes.

/**
 * A file made of a text, which the browser saves.
 * @param {string} name @param {string} text
 */
export function saveAs(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
