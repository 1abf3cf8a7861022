/** What Vite and the browser add to the types of the map. */
declare module "virtual:land-outline" {
  export const landUrl: string;
}

interface TrustedScriptUrlPolicy {
  /** The browser's type is an object. The only use is to hand it to `Worker`, which also accepts a string in its types. */
  createScriptURL(url: string): string;
}

interface Window {
  /** Firefox and Safari had no Trusted Types for a long time. */
  readonly trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): TrustedScriptUrlPolicy;
  };
}
