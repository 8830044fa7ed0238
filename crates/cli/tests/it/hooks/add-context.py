#!/usr/bin/env python3
# Save as: ~/.ollm/hooks/add-context.py

import sys
import json
import os
from datetime import datetime

def main():
    try:
        input_data = json.load(sys.stdin)
        event = input_data['event']
        
        if event == 'before_model':
            # Add custom context
            context = f"""
Current time: {datetime.now().isoformat()}
Working directory: {os.getcwd()}
User: {os.environ.get('USER', 'unknown')}
"""
            
            output = {
                'continue': True,
                'systemMessage': context.strip(),
            }
            json.dump(output, sys.stdout)
        else:
            json.dump({'continue': True}, sys.stdout)
    
    except Exception as e:
        json.dump({
            'continue': True,
            'error': str(e),
        }, sys.stdout)

if __name__ == '__main__':
    main()
