// Browsers start no worker from a file. Where the site is opened from a folder, what would be one runs in a frame, so that
// the search works there too. Its name is one that zensical knows: it then loads none from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inner = this.frame.contentWindow;
      this.inner.postMessage = data => setTimeout(() => this.onmessage?.(new MessageEvent("message", { data })));
      const script = this.inner.document.createElement("script");
      script.src = url;
      this.loaded = new Promise(done => script.onload = done);
      script.onerror = event => this.onerror?.(event);
      this.inner.document.body.append(script);
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
  };
}
