/** Declares a virtual module of Vite, and an API of the browser that TypeScript does not declare. */
declare module "virtual:land-outline" {
  export const landUrl: string;
}

interface TrustedScriptUrlPolicy {
  /**
   * In the browser, the result is an object and not a string. It is declared as a string, because it is only passed to `Worker`, whose
   * declaration accepts a string.
   */
  createScriptURL(url: string): string;
}

interface Window {
  /** Undefined in browsers without Trusted Types, such as older versions of Firefox and Safari. */
  readonly trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): TrustedScriptUrlPolicy;
  };
}
