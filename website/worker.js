// Browsers start no worker of a page that was opened from the disk: its script runs in a hidden frame of the page instead.
if (location.protocol === "file:") {
  const send = (to, content) => {
    const data = structuredClone(content);
    setTimeout(() => to?.onmessage?.(new MessageEvent("message", { data })));
  };
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => send(this, data);
      const script = inside.document.createElement("script");
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      script.src = url;
      inside.document.body.append(script);
    }

    async postMessage(data) {
      await this.loaded;
      send(this.frame.contentWindow, data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
