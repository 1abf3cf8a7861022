/** Ends a command with one sentence if Node.js cannot run the service. It is JavaScript, because old versions cannot read TypeScript. */
const NEEDED = 24;
const [major] = process.versions.node.split(".");
if (Number(major) < NEEDED) {
  console.error(
    `The service needs Node.js ${NEEDED}, and this is Node.js ${process.versions.node}. npm ci installs Node.js ${NEEDED} unless it ignores scripts: run npm rebuild node --ignore-scripts=false`,
  );
  process.exit(1);
}
