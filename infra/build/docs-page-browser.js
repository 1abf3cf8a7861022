// Runs in the browser on the page of the API reference: unpacks Swagger UI, changes some of its parts and starts it. docs-page.ts puts this
// file into the page as a script of its own.
(async () => {
  const at = (id) => document.getElementById(id);
  const bytes = Uint8Array.from(atob(at("packed").textContent), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { style, script, guides, signIn } = await new Response(unpacked).json();
  const add = (name, textContent) => document.head.append(Object.assign(document.createElement(name), { textContent }));
  add("style", style);
  // The browser runs this script, because the content security policy of the page contains its hash.
  add("script", script);

  const { SwaggerUIBundle } = window;
  const Guide = ({ React, getComponent, id, title, text }) => {
    const [isOpen, setIsOpen] = React.useState(location.hash === `#${id}`);
    const body = isOpen && React.createElement(getComponent("Markdown", true), { source: text });
    const onToggle = ({ target }) => setIsOpen(target.open);
    return React.createElement(
      "details",
      { id, open: isOpen, onToggle },
      React.createElement("summary", null, title),
      body,
    );
  };
  const plugin = {
    fn: {
      // Replaces the search of Swagger UI, which does not find words in the summaries of operations.
      opsFilter: (sections, phrase) => {
        const words = phrase.toLowerCase().split(/\s+/);
        const isFound = (section) => (operation) => {
          const texts = [section, operation.get("path"), operation.getIn(["operation", "summary"])];
          const text = texts.join(" ").toLowerCase();
          return words.every((word) => text.includes(word));
        };
        const found = (list, section) => list.update("operations", (all) => all.filter(isFound(section)));
        return sections.map(found).filter((list) => list.get("operations").size > 0);
      },
    },
    statePlugins: {
      layout: {
        wrapActions: {
          // Open all sections while the user searches, because a closed section would hide the operations that are found.
          updateFilter:
            (original, { layoutActions, specSelectors }) =>
            (phrase) => {
              for (const section of specSelectors.tags()) {
                layoutActions.show(["operations-tag", section.get("name")], phrase !== "");
              }
              return original(phrase);
            },
        },
      },
    },
    wrapComponents: {
      InfoContainer:
        (Original, { React, getComponent }) =>
        (props) => {
          const all = guides.map((guide) =>
            React.createElement(Guide, { ...guide, key: guide.id, React, getComponent }),
          );
          const list = React.createElement("div", { className: "guides" }, all);
          return React.createElement(React.Fragment, null, React.createElement(Original, props), list);
        },
      // Hide the responses with an error, because the guide "Errors" describes them for all operations.
      responses:
        (Original, { React }) =>
        (props) => {
          const responses = props.responses.filter((_, status) => !/^[45]/.test(status));
          return React.createElement(Original, { ...props, responses });
        },
    },
  };
  // The URL is relative, so that the page also works below the path of an API Gateway stage.
  const ui = SwaggerUIBundle({
    url: "openapi.json",
    dom_id: "#reference",
    deepLinking: true,
    docExpansion: "none",
    filter: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    supportedSubmitMethods: ["get", "post", "put", "patch", "delete"],
    plugins: [plugin],
  });

  if (signIn === undefined) return;
  at("sign-in").addEventListener("click", async () => {
    const email = at("email").value;
    const body = JSON.stringify({ email });
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(signIn.tokenPath, { method: "POST", headers, body });
    const text = (await answer.text()).trim();
    if (answer.ok) ui.preauthorizeApiKey(signIn.scheme, text);
    at("signed-in").textContent = answer.ok ? `Signed in as ${email}` : text;
  });
})();
