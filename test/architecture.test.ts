/** Tests the order of imports between folders, the first line, name and length of each file, and the targets of links in documents. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");

function sources(folder: string): string[] {
  return (
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      // A test writes the built client into this folder, which is not part of the repository.
      .filter((file) => !join(folder, file).startsWith("docs/client/build/"))
      .map((file) => join(folder, file))
  );
}

function imports(file: string): string[] {
  const specifiers = [...read(file).matchAll(/(?:from|import\(|import)\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
  return specifiers.flatMap((name) => {
    if (name.startsWith("#shared/")) return [name.slice(1)];
    return name.startsWith(".") ? [relative(root, join(root, dirname(file), name))] : [];
  });
}

const read = (file: string): string => readFileSync(join(root, file), "utf8");
const all = ["infra", "functions", "shared"].flatMap(sources);

/**
 * The rule for imports treats this file as a folder of its own, because it imports the clients of all services from their folders. The
 * other files directly in shared/ form the lowest room and must not import it.
 */
const CONTEXT = "shared/context.ts";

/** The rooms, from the lowest to the highest: source folders and the file CONTEXT. A file imports only from its own room and lower ones. */
const rooms = [
  ...["shared", "shared/aws", "shared/db", "shared/outbound", "shared/secrets", CONTEXT, "shared/geometry"],
  "shared/company-index",
  ...["activity", "search", "read", "write", "repair"].map((room) => `shared/company-index/${room}`),
  ...["shared/auth", "shared/http", "shared/sessions", "shared/reference", "shared/prospects", "shared/prospects/list"],
  ...["shared/prospects/index", "shared/prospects/csv", "shared/territories", "shared/map", "shared/reports"],
  ...["shared/jobs", "shared/jobs/bulk", "shared/jobs/import", "shared/jobs/export"],
  ...["shared/sync/changes", "shared/sync/operations", "shared/webhooks"],
  ...["limiter", "subscriptions", "events", "deliver", "reconcile"].map((room) => `shared/webhooks/${room}`),
  ...["shared/smoke", "functions", "infra/routes", "infra/cli/command", "infra/build", "infra/edge", "infra/settings"],
  ...["infra/stack", "infra", "infra/release", "infra/security", "infra/openapi"],
  ...["servers", "template", "engines", "runtime", "gateway", "sources", "demo"].map((room) => `infra/local/${room}`),
  ...["infra/local", "infra/cli/company", "infra/cli/restore", "infra/cli/release", "docs/client"],
  ...["infra/cli/csv", "infra/cli"],
];

/** Returns the folder of a file, or CONTEXT. The folder functions/ is one room together with its subfolders. */
function roomOf(file: string): string {
  if (file === CONTEXT) return file;
  return file.startsWith("functions/") ? "functions" : dirname(file);
}

/** Returns the position of the file's room in `rooms`. A file outside all rooms, such as a test, is above them: no room may import it. */
function levelOf(file: string): number {
  const level = rooms.indexOf(roomOf(file));
  return level === -1 ? rooms.length : level;
}

test("files import only from their own room and from lower rooms", () => {
  const arrows = all.flatMap((file) => imports(file).map((target) => ({ file, target })));
  const upwards = arrows.filter(({ file, target }) => levelOf(target) > levelOf(file));
  expect(upwards.map(({ file, target }) => `${file} -> ${target}`)).toEqual([]);
});

test("every folder of code is one of the rooms", () => {
  expect([...new Set(all.map(roomOf))].filter((room) => !rooms.includes(room))).toEqual([]);
});

test("the imports of files form no circle", () => {
  const arrows = new Map(all.map((file) => [file, imports(file)]));
  const finished = new Set<string>();
  function circle(file: string, path: readonly string[]): string[] {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file)) return [];
    const found = (arrows.get(file) ?? [])
      .map((target) => circle(target, [...path, file]))
      .find(({ length }) => length);
    finished.add(file);
    return found ?? [];
  }
  expect(
    all
      .map((file) => circle(file, []))
      .find(({ length }) => length)
      ?.join(" -> "),
  ).toBeUndefined();
});

test("functions use the table through a domain module only", () => {
  const wrong = sources("functions").filter((file) => imports(file).some((target) => target.startsWith("shared/db/")));
  expect(wrong).toEqual([]);
});

test("clients of the AWS SDK are made only in one place for each kind of program, with the same configuration", () => {
  // In infra/stack, the names of some CDK constructs also end in `Client`, such as `UserPoolClient`. They are not SDK clients, so this
  // folder is left out.
  const made = all
    .filter((file) => !file.startsWith("infra/stack/"))
    .flatMap((file) =>
      [...read(file).matchAll(/new (?:\w+\.)?\w*Client\(([\s\S]{0,40})/g)].map(([, options = ""]) => ({
        file,
        options,
      })),
    );
  const places = /^(?:shared\/aws\/\w+|infra\/(?:cli|local\/servers)\/clients)\.ts$/;
  const wrong = made.filter(({ file, options }) => !places.test(file) || !options.includes("clientConfig("));
  expect(made.length).toBeGreaterThan(5);
  expect(wrong.map(({ file, options }) => `${file}: ${options}`)).toEqual([]);
});

test("shared uses commands of the AWS SDK only in the modules of the services and of the table", () => {
  const outside = [...sources("shared"), ...sources("functions")].filter((file) => !/^shared\/(?:aws|db)\//.test(file));
  const imported = /^import (?!type )(?:\{[^}]*\}|\w+|\* as \w+) from "@(?:aws-sdk|smithy)\//m;
  expect(outside.filter((file) => imported.test(read(file)))).toEqual([]);
});

const ofConsole = readdirSync(join(root, "console"), { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && !/^(?:dist|node_modules)\//.test(file))
  .map((file) => join("console", file));

test("shared/ exports nothing that only tests use", () => {
  const importers = new Map<string, string[]>();
  for (const file of [...all, ...ofConsole]) {
    for (const target of imports(file)) importers.set(target, [...(importers.get(target) ?? []), file]);
  }
  const unused = sources("shared").flatMap((file) => {
    const names = [...read(file).matchAll(/^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm)];
    return names.flatMap(([, name = ""]) => {
      const uses = (text: string): number => text.match(new RegExp(`\\b${name}\\b`, "g"))?.length ?? 0;
      const isUsed = uses(read(file)) > 1 || importers.get(file)?.some((importer) => uses(read(importer)) > 0);
      return isUsed ? [] : [`${file}: ${name}`];
    });
  });
  expect(unused).toEqual([]);
});

/** All files that people write. docs/client/api.ts is left out, because it is generated. */
const written = [
  ...all,
  ...ofConsole,
  ...sources("test"),
  ...sources("docs/client").filter((file) => !file.includes("node_modules") && file !== "docs/client/api.ts"),
];

test("every file begins with a comment on its purpose", () => {
  expect(written.filter((file) => !/^(?:#!.*\n)?\/\*\*/.test(read(file)))).toEqual([]);
});

test("no file has a generic name", () => {
  const empty = /^(?:utils?|helpers?|common|types|index|misc)\.tsx?$/;
  expect(written.filter((file) => empty.test(basename(file)))).toEqual([]);
});

test("importing a function opens no connection, reads no environment variable and waits for nothing", () => {
  const wrong = sources("functions").filter((file) => /process\.env|await import|new \w+Client/.test(read(file)));
  expect(wrong).toEqual([]);
});

test("files have at most 400 lines", () => {
  expect(written.filter((file) => read(file).split("\n").length > 401)).toEqual([]);
});

test("the README has at most 120 lines", () => {
  expect(read("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(120);
});

const documents = [
  "README.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((file) => join("docs", file)),
];

test("docs/architecture.md has a link to every folder of code", () => {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [`${folder}/${entry.name}`] : [],
    );
  const folders = ["console", "docs/client", "functions", "infra", "releases", "shared", "test"];
  const links = new Set(
    [...read("docs/architecture.md").matchAll(/\]\(([^)#]+)/g)].map(([, to = ""]) => join("docs", to)),
  );
  const all = [...folders, ...below("infra"), ...below("shared")];
  expect(all.filter((folder) => !links.has(folder))).toEqual([]);
});

test("every link of a document has a target", () => {
  const broken = documents
    .filter((file) => file.endsWith(".md") && !file.includes("node_modules"))
    .flatMap((file) =>
      [...read(file).matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)]
        .map(([, target = ""]) => join(dirname(file), target))
        .filter((target) => !existsSync(join(root, target)))
        .map((target) => `${file} -> ${target}`),
    );
  expect(broken).toEqual([]);
});
