/**
 * The e-mail addresses of the demo users. They are in a separate file, so that code that needs only the addresses does not load the demo
 * data.
 */
export const demoUsers = [
  "owner@acme.test",
  "admin@acme.test",
  "rep@acme.test",
  "rep2@acme.test",
  "viewer@acme.test",
  "importer@acme.test",
  "owner@globex.test",
  "rep@globex.test",
] as const;
